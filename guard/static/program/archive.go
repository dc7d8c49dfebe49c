package program

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

// dd copies blocks between what its operands name.
func dd(m *Machine, c *Call) effect.Value {
	var in, out, count, bs effect.Value

	in = c.Stdin
	hasOut := false

	for _, a := range c.Args {
		key, val, _ := strings.Cut(a.Text, "=")
		v := withText(a, val)

		switch key {
		case "if":
			in = m.Read(v, c.Span, c.Flags, "dd")
		case "of":
			out, hasOut = v, true
		case "count":
			count = v
		case "bs":
			bs = v
		}
	}

	if !hasOut {
		return in
	}

	m.Write(out, in, c.Span, c.Flags, "dd")

	if in.Ref == "/dev/zero" || in.Has(effect.TaintRandom) {
		size := int64(1) << 62
		if !count.IsEmpty() {
			size = parseSize(count.Text) * max(parseSize(bs.Text), 512)
			if count.IsConst() && parseSize(count.Text) == 0 || !count.IsConst() {
				size = 0
			}
		}

		if target := place.Resolve(out.Text, ""); !strings.HasPrefix(target, "/dev/") {
			m.add(c, effect.Effect{Kind: effect.Alloc, Target: effect.Const("disk"), Data: effect.Const(decimal(size))})
		}
	}

	return effect.Value{}
}

// truncate and fallocate set a file's size.
func resize(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "srlo", " size reference length offset ")
	size, _ := o.val("s", "size", "l", "length")

	for _, p := range o.pos {
		flags := c.Flags
		if size.Text == "0" {
			flags |= effect.FlagTruncate
		} else {
			flags |= effect.FlagAppend
		}

		m.Write(p, effect.Value{}, c.Span, flags, Base(c.Name.Text))
	}

	if n := parseSize(size.Text); n > 0 && Base(c.Name.Text) == "fallocate" {
		m.add(c, effect.Effect{Kind: effect.Alloc, Target: effect.Const("disk"), Data: effect.Const(decimal(n))})
	}

	return effect.Value{}
}

// parseSize reads 10, 10M, 10MiB, 10GB, 10c.
func parseSize(s string) int64 {
	var n int64

	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		if n > 1<<50 {
			return 1 << 60
		}

		n = n*10 + int64(s[i]-'0')
		i++
	}

	if i < len(s) {
		switch s[i] | 0x20 {
		case 'k':
			n <<= 10
		case 'm':
			n <<= 20
		case 'g':
			n = min(n, 1<<31) << 30
		case 't', 'p', 'e':
			n = min(n, 1<<20) << 40
		}
	}

	return n
}

func decimal(n int64) string {
	if n <= 0 {
		return "0"
	}

	var b [20]byte

	i := len(b)
	for n > 0 {
		i--
		b[i] = byte('0' + n%10)
		n /= 10
	}

	return string(b[i:])
}

// archive is tar, zip, 7z and the like: what goes in taints what comes out.
func archive(m *Machine, c *Call) effect.Value {
	name := Base(c.Name.Text)
	o := getopt(c.Args, "bnPtTi", "")

	var (
		out     effect.Value
		files   []effect.Value
		create  bool
		extract bool
	)

	for i := 0; i < len(c.Args); i++ {
		a := c.Args[i].Text

		switch {
		case name == "tar" && (strings.HasPrefix(a, "--checkpoint-action=exec=") || strings.HasPrefix(a, "--to-command=") || strings.HasPrefix(a, "--use-compress-program=") ||
			strings.HasPrefix(a, "--rsh-command=") || strings.HasPrefix(a, "--info-script=") || strings.HasPrefix(a, "--new-volume-script=")):
			cmd := a[strings.IndexByte(a, '=')+1:]
			m.runText(c, withText(c.Args[i], strings.TrimPrefix(cmd, "exec=")), "bash", "tar")
		case name == "tar" && (a == "-I" || a == "-C" || a == "--exclude" || a == "-T" || a == "-X" || a == "--directory"):
			if a == "-I" && i+1 < len(c.Args) {
				m.runText(c, c.Args[i+1], "bash", "tar -I")
			}

			i++
		case strings.HasPrefix(a, "--file="):
			out = withText(c.Args[i], a[len("--file="):])
		case strings.HasPrefix(a, "--create"):
			create = true
		case strings.HasPrefix(a, "--extract"), a == "--get", a == "--list":
			extract = true
		case strings.HasPrefix(a, "--"):
		case name == "tar" && (i == 0 || len(a) > 0 && a[0] == '-'):
			create = create || strings.ContainsAny(a, "cru")
			extract = extract || strings.ContainsAny(a, "xt")

			if strings.HasSuffix(a, "f") && i+1 < len(c.Args) {
				i++
				out = c.Args[i]
			} else if j := strings.IndexByte(a, 'f'); j > 0 && a[0] == '-' && j+1 < len(a) && !strings.Contains("czvjJxtprkmhO", a[j+1:j+2]) {
				out = withText(c.Args[i], a[j+1:])
			} else if j >= 0 && i+1 < len(c.Args) {
				i++
				out = c.Args[i]
			}
		case len(a) > 0 && a[0] == '-':
			if name == "zip" && (a == "-T" || a == "-TT") && i+1 < len(c.Args) && a == "-TT" {
				i++
				m.runText(c, c.Args[i], "bash", "zip -TT")
			}

			if a == "-x" {
				i = len(c.Args)
			}
		default:
			files = append(files, c.Args[i])
		}
	}

	if name != "tar" && len(files) > 1 {
		create = true

		if name == "7z" || name == "7za" || name == "rar" {
			create = files[0].Text == "a"
			files = files[1:]
		}

		if len(files) > 0 {
			out, files = files[0], files[1:]
		}
	}

	if extract || !create {
		content := c.Stdin
		if !out.IsEmpty() && out.Text != "-" {
			content = m.Read(out, c.Span, c.Flags, name)
		}

		content = opaque(content)
		if printsMembers(c.Args) {
			content = unpacked(content)
		}

		return content
	}

	content := effect.Unknown(0)
	removes := hasWord(c.Args, "--remove-files") || name == "zip" && o.has("m", "move")

	for _, f := range files[:min(len(files), 32)] {
		content = effect.Concat(content, opaque(m.Read(f, c.Span, c.Flags, name)))

		if removes {
			m.add(c, effect.Effect{Kind: effect.Delete, Target: f, Flags: effect.FlagRecursive, Via: name + " --remove-files"})
		}
	}

	if out.IsEmpty() || out.Text == "-" {
		return content
	}

	m.Write(out, content, c.Span, c.Flags, name)

	return effect.Value{}
}

// unpackedRef is the Ref of what was compressed or in an archive.
const unpackedRef = "unpacked"

// unpacked marks what nobody could read before.
func unpacked(v effect.Value) effect.Value {
	v.Taint |= effect.TaintDecoded
	v.Ref = unpackedRef

	return v
}

// decrypter is gpg and age: with -d it prints what nobody could read before.
func decrypter(short, long string) model {
	plain := filter(short, long, 0)

	return func(m *Machine, c *Call) effect.Value {
		v := plain(m, c)
		if o := getopt(c.Args, short, long); o.has("d", "decrypt") {
			v.Taint |= effect.TaintDecoded
			m.add(c, effect.Effect{Kind: effect.Decode, Target: effect.Const(Base(c.Name.Text)), Data: v})
		} else if o.has("c", "symmetric", "e", "encrypt") && len(o.pos) > 0 {
			to, named := o.val("o", "output")
			if !named {
				to = withText(o.pos[0], o.pos[0].Text+".gpg")
			}

			m.Write(to, v, c.Span, c.Flags, Base(c.Name.Text))
		}

		return v
	}
}

// printsMembers says whether tar prints what it takes out.
func printsMembers(args []effect.Value) bool {
	for i, a := range args {
		short := i == 0 || strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--")
		if a.Text == "--to-stdout" || short && strings.Contains(a.Text, "O") && strings.ContainsAny(a.Text, "xf") {
			return true
		}
	}

	return false
}

// unzip prints members with -p.
func unzip(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "dPx", "")
	if len(o.pos) == 0 {
		return effect.Unknown(effect.TaintOutput)
	}

	content := opaque(m.Read(o.pos[0], c.Span, c.Flags, "unzip"))
	if o.has("p", "c") {
		content = unpacked(content)
	}

	return content
}

// compress is gzip and friends: with -c or as a filter they print, else they
// replace files.
func compress(decompress bool, kind string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, "SbTo", " suffix ")
		v := opaque(m.input(c, o.pos))

		if decompress || o.has("d", "decompress", "uncompress") {
			v = unpacked(v)
			m.add(c, effect.Effect{Kind: effect.Decode, Target: effect.Const(kind), Data: v})
		}

		if len(o.pos) > 0 && !o.has("c", "stdout", "to-stdout") && kind != "cat" {
			for _, p := range o.pos {
				if key := m.key(p); key != "" && m.Files != nil {
					if content, ok := m.Files[key]; ok {
						m.Files[key+".gz"] = opaque(content)
						m.Files[strings.TrimSuffix(key, ".gz")] = opaque(content)
					}
				}
			}
		}

		return v
	}
}
