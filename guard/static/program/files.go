package program

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
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
		if !out.IsEmpty() && out.Text != "-" {
			return opaque(m.Read(out, c.Span, c.Flags, name))
		}

		return opaque(c.Stdin)
	}

	content := effect.Unknown(0)
	for _, f := range files[:min(len(files), 32)] {
		content = effect.Concat(content, opaque(m.Read(f, c.Span, c.Flags, name)))
	}

	if out.IsEmpty() || out.Text == "-" {
		return content
	}

	m.Write(out, content, c.Span, c.Flags, name)

	return effect.Value{}
}

// compress is gzip and friends: with -c or as a filter they print, else they
// replace files.
func compress(decompress bool, kind string) model {
	return func(m *Machine, c *Call) effect.Value {
		o := getopt(c.Args, "SbTo", " suffix ")
		v := opaque(m.input(c, o.pos))

		if decompress || o.has("d", "decompress", "uncompress") {
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
