package program

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// options are a command line taken apart.
type options struct {
	flags []option
	pos   []effect.Value
}

type option struct {
	name string
	val  effect.Value
}

// getopt takes args apart in GNU style. short lists the letters that take a
// value; long the names that do, each with a space on both sides. Names are
// kept without dashes.
func getopt(args []effect.Value, short, long string) options {
	var o options

	for i := 0; i < len(args); i++ {
		a := args[i].Text

		switch {
		case a == "--":
			o.pos = append(o.pos, args[i+1:]...)

			return o
		case strings.HasPrefix(a, "--"):
			name, val, has := strings.Cut(a[2:], "=")
			v := args[i]
			v.Text = val

			if !has && strings.Contains(long, " "+name+" ") && i+1 < len(args) {
				i++
				v = args[i]
			}

			o.flags = append(o.flags, option{name, v})
		case len(a) > 1 && a[0] == '-' && !strings.HasPrefix(a, "-"+effect.HoleText):
			i = o.cluster(args, i, short)
		default:
			o.pos = append(o.pos, args[i])
		}
	}

	return o
}

// cluster reads "-abcVALUE" and returns the index of the last word used.
func (o *options) cluster(args []effect.Value, i int, short string) int {
	a := args[i].Text

	for j := 1; j < len(a); j++ {
		if strings.IndexByte(short, a[j]) < 0 {
			o.flags = append(o.flags, option{name: a[j : j+1]})

			continue
		}

		v := args[i]

		switch {
		case j+1 < len(a):
			v.Text = strings.TrimPrefix(a[j+1:], "=")
		case i+1 < len(args):
			i++
			v = args[i]
		default:
			v = effect.Value{}
		}

		o.flags = append(o.flags, option{a[j : j+1], v})

		break
	}

	return i
}

// has says whether any of the named options is given.
func (o *options) has(names ...string) bool {
	for i := range o.flags {
		for _, n := range names {
			if o.flags[i].name == n {
				return true
			}
		}
	}

	return false
}

// val is the value of the last of the named options.
func (o *options) val(names ...string) (effect.Value, bool) {
	for i := len(o.flags) - 1; i >= 0; i-- {
		for _, n := range names {
			if o.flags[i].name == n {
				return o.flags[i].val, true
			}
		}
	}

	return effect.Value{}, false
}

// vals are the values of all of the named options.
func (o *options) vals(names ...string) []effect.Value {
	var out []effect.Value

	for i := range o.flags {
		for _, n := range names {
			if o.flags[i].name == n {
				out = append(out, o.flags[i].val)
			}
		}
	}

	return out
}
