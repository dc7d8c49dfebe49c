package program

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// findModel walks a tree: what it deletes, what it runs on what it finds.
func findModel(m *Machine, c *Call) effect.Value {
	var roots []effect.Value

	i := 0
	for ; i < len(c.Args); i++ {
		a := c.Args[i].Text
		if a == "-H" || a == "-L" || a == "-P" {
			continue
		}

		if strings.HasPrefix(a, "-") || a == "(" || a == "!" || a == ")" {
			break
		}

		roots = append(roots, c.Args[i])
	}

	if len(roots) == 0 {
		roots = []effect.Value{effect.Const(".")}
	}

	names, filtered := findTests(c.Args[i:])
	found := findResults(roots, names, filtered)
	// What -exec succeeds for, or what is near, is not everything.
	listed := !filtered && !hasWord(c.Args, "-exec") && !hasWord(c.Args, "-execdir") && !hasWord(c.Args, "-maxdepth")

	for ; i < len(c.Args); i++ {
		switch c.Args[i].Text {
		case "-delete":
			for _, f := range found {
				flags := effect.FlagRecursive
				if filtered {
					flags = 0
				}

				m.add(c, effect.Effect{Kind: effect.Delete, Target: f, Flags: flags, Via: "find -delete"})
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(c.Args) && c.Args[end].Text != ";" && !(c.Args[end].Text == "+" && end > i+1 && strings.Contains(c.Args[end-1].Text, "{}")) {
				end++
			}

			for _, f := range found {
				m.runWith(c, c.Args[i+1:min(end, len(c.Args))], "{}", f)
			}

			i = end
		case "-fprint", "-fprintf", "-fls", "-fprint0":
			if i+1 < len(c.Args) {
				m.Write(c.Args[i+1], effect.Unknown(0), c.Span, c.Flags, "find")
			}
		}
	}

	out := effect.Unknown(0)
	out.Ref = "find"

	switch {
	case listed && len(found) > 1:
		names := make([]string, 0, len(found))
		for _, f := range found {
			names = append(names, f.Text)
		}

		out.Text, out.Ref = strings.Join(names, "\n"), everythingRef
		if !out.IsConst() {
			out = opaque(out)
		}
	case len(found) > 0: // the first stands for all
		out.Text = found[0].Text

		switch {
		case listed && out.IsConst():
			out.Ref = everythingRef
		case out.IsConst():
			out.Text += "/" + effect.HoleText
		}
	}

	return out
}

// everythingRef is the Ref of a list of all that is below a place; the text is
// the place.
const everythingRef = "find all"

// runWith runs a command with every occurrence of a token replaced.
func (m *Machine) runWith(c *Call, words []effect.Value, token string, with effect.Value) {
	if len(words) == 0 {
		return
	}

	args := make([]effect.Value, len(words))

	for i, w := range words {
		args[i] = w
		if token != "" && strings.Contains(w.Text, token) {
			v := with
			v.Text = strings.ReplaceAll(w.Text, token, with.Text)
			args[i] = v
		}
	}

	m.start(Call{Name: args[0], Args: args[1:], Stdin: effect.Unknown(0), Span: c.Span, Flags: c.Flags | effect.FlagLoop})
}

// findTests collects the name tests of a find expression; filtered says that
// something narrows the result below "everything there".
func findTests(args []effect.Value) (names []string, filtered bool) {
	for i := 0; i < len(args); i++ {
		switch args[i].Text {
		case "-name", "-iname", "-path", "-ipath", "-wholename":
			if i+1 < len(args) {
				if n := strings.Trim(args[i+1].Text, "*/"); n != "" {
					// All but what has a name is nearly all.
					if i == 0 || args[i-1].Text != "!" && args[i-1].Text != "-not" {
						names = append(names, args[i+1].Text)
						filtered = true
					}
				}

				i++
			}
		case "-regex", "-iregex", "-newer", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-size", "-user", "-group", "-perm",
			"-empty", "-nouser", "-nogroup", "-uid", "-gid", "-inum", "-links", "-samefile", "-newermt", "-lname":
			filtered = true
		case "-type", "-xtype":
			// Files and directories are everything; links and sockets are few.
			if i+1 < len(args) && args[i+1].Text != "f" && args[i+1].Text != "d" {
				filtered = true
			}
		}
	}

	return names, filtered
}

// findResults are the paths that stand for what find finds.
func findResults(roots []effect.Value, names []string, filtered bool) []effect.Value {
	var out []effect.Value

	for _, r := range roots {
		switch {
		case len(names) > 0:
			for _, n := range names[:min(len(names), 8)] {
				v := r
				if !strings.HasPrefix(n, "/") {
					n = strings.TrimPrefix(n, "*/")
					v.Text = strings.TrimSuffix(r.Text, "/") + "/" + effect.HoleText + "/" + n
				} else {
					v.Text = n
				}

				out = append(out, v)
			}
		case filtered:
			v := r
			v.Text = strings.TrimSuffix(r.Text, "/") + "/" + effect.HoleText
			out = append(out, v)
		default:
			out = append(out, r)
		}

		if len(out) > 16 {
			break
		}
	}

	return out
}
