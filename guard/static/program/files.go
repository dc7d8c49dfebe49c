package program

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// remove is rm, rmdir, unlink, shred, srm, wipe.
func remove(always effect.Flag) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, "ns", " iterations size random-source ")
		flags := always

		if o.has("r", "R", "recursive") {
			flags |= effect.FlagRecursive
		}

		if o.has("f", "force", "no-preserve-root") {
			flags |= effect.FlagForce
		}

		if o.has("help", "version") {
			return effect.Value{}
		}

		for _, p := range o.pos {
			m.add(c, effect.Effect{Kind: effect.Delete, Target: p, Flags: flags})
			delete(m.Files, m.key(p))
		}

		return effect.Value{}
	}
}

// copyTo is cp, install, rsync of local files, and mv with keep unset.
func copyTo(keep bool) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, "tSmog", " target-directory suffix mode owner group ")
		if Base(c.Name.Text) == "install" && o.has("d", "directory") {
			return effect.Value{}
		}

		pos := o.pos
		dest, has := o.val("t", "target-directory")

		if !has {
			if len(pos) < 2 {
				return effect.Value{}
			}

			dest, pos = pos[len(pos)-1], pos[:len(pos)-1]
		}

		for _, src := range pos[:min(len(pos), 64)] {
			m.copyOne(c, src, dest, keep, len(pos) > 1 || has)
		}

		if bits, set := o.val("m", "mode"); set {
			m.add(c, effect.Effect{Kind: effect.Mode, Target: dest, Data: bits, Via: "install -m"})
		}

		return effect.Value{}
	}
}

func (m *Machine) copyOne(c *Call, src, dest effect.Value, keep, dir bool) {
	content := m.Read(src, c.Span, c.Flags, Base(c.Name.Text))
	target := dest

	if (dir || strings.HasSuffix(dest.Text, "/") || dest.Text == ".") && src.IsConst() && dest.IsConst() {
		target = effect.Const(strings.TrimSuffix(dest.Text, "/") + "/" + path.Base(src.Text))
	}

	flags := effect.Flag(0)
	if keep {
		flags = effect.FlagCopy
	}

	m.add(c, effect.Effect{Kind: effect.Move, Target: target, Args: []effect.Value{src}, Data: content, Flags: flags})

	if key := m.key(target); key != "" && len(m.Files) < maxFiles {
		if m.Files == nil {
			m.Files = map[string]effect.Value{}
		}

		m.Files[key] = content
	}
}

// link is ln.
func link(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "tS", " target-directory suffix ")
	if len(o.pos) >= 2 {
		dest := o.pos[len(o.pos)-1]
		for _, src := range o.pos[:len(o.pos)-1] {
			m.add(c, effect.Effect{Kind: effect.Link, Target: dest, Data: src})

			if key := m.key(dest); key != "" && len(m.Files) < maxFiles && src.IsConst() {
				if v, ok := m.file(src); ok {
					m.Files[key] = v
				}
			}
		}
	}

	return effect.Value{}
}

// mode is chmod, chown, chgrp, setfacl, chattr, setcap.
func mode(m *Machine, c *Call) effect.Value {
	var pos []effect.Value

	flags := effect.Flag(0)
	ref := false

	for _, a := range c.Args {
		switch {
		case a.Text == "-R" || a.Text == "--recursive" || a.Text == "-Rf" || a.Text == "-fR" || a.Text == "-vR" || a.Text == "-Rv" || a.Text == "-hR" || a.Text == "-Rh":
			flags |= effect.FlagRecursive
		case strings.HasPrefix(a.Text, "--reference"):
			ref = true
		case strings.HasPrefix(a.Text, "--"), len(a.Text) > 1 && a.Text[0] == '-' && strings.Trim(a.Text[1:], "rwxXstugoa+-=,") != "" && Base(c.Name.Text) != "chattr":
		default:
			pos = append(pos, a)
		}
	}

	if ref {
		pos = append([]effect.Value{effect.Unknown(0)}, pos...)
	}

	if len(pos) < 2 {
		return effect.Value{}
	}

	for _, p := range pos[1:] {
		m.add(c, effect.Effect{Kind: effect.Mode, Target: p, Data: pos[0], Flags: flags})
	}

	return effect.Value{}
}

// tee copies its input to files.
func tee(m *Machine, c *Call) effect.Value {
	o := getopt(c.Args, "", "")
	flags := c.Flags

	if o.has("a", "append") {
		flags |= effect.FlagAppend
	}

	for _, p := range o.pos {
		m.Write(p, c.Stdin, c.Span, flags, Base(c.Name.Text))
	}

	return c.Stdin
}

// touch, mkdir and the like make empty things.
func create(m *Machine, c *Call) effect.Value {
	return effect.Value{}
}

// mktemp names a new file; two of them are not the same.
func mktemp(m *Machine, c *Call) effect.Value {
	return effect.Const("/tmp/tmp." + decimal(int64(c.Span.Start)+1))
}

// basename, dirname and realpath work on text.
func pathName(f func(string) string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, "s", "")
		if len(o.pos) == 0 || !o.pos[0].IsConst() {
			return effect.Unknown(0)
		}

		return withText(o.pos[0], f(o.pos[0].Text)+"\n")
	}
}

// readFiles is any program that reads the files it is given and prints about
// them.
func readFiles(short string, skip int) model {
	return filter(short, "", skip)
}

// lookUp is which and type: the name stands for the path.
func lookUp(m *Machine, c *Call) effect.Value {
	for _, a := range c.Args {
		if len(a.Text) > 0 && a.Text[0] != '-' {
			return withText(a, a.Text+"\n")
		}
	}

	return effect.Unknown(0)
}
