package static

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

var destructiveRules = []row{
	{
		Rule: Rule{
			ID: "delete-system-tree", Category: "destructive_file", Severity: Critical, CWE: "CWE-732",
			Seen: "it deletes {}, which destroys the system or a home directory.",
			Fine: "Deleting a directory you made, such as `rm -rf ./build`, would be fine.",
		},
		match: matching(deletesTree, effect.Delete),
	},
	{
		Rule: Rule{
			ID: "delete-system-file", Category: "destructive_file", Severity: High, CWE: "CWE-732",
			Seen: "it deletes {}, a file the system needs.", Fine: "Deleting files of your own project or in /tmp would be fine.",
		},
		match: matching(deletesVital, effect.Delete, effect.Move),
	},
	{
		Rule: Rule{
			ID: "overwrite-device", Category: "destructive_file", Severity: Critical, CWE: "CWE-732",
			Seen: "it writes to {}, which destroys what is on the device.", Fine: "Writing to a file, such as ./disk.img, would be fine.",
		},
		match: finding(func(f *facts) []hit { return append(overwritesDevice(f), formats(f)...) }, effect.Write, effect.Move, effect.Exec),
	},
	{
		Rule: Rule{
			ID: "overwrite-system-file", Category: "destructive_file", Severity: High, CWE: "CWE-732",
			Seen: "it overwrites {}, a file the system needs.", Fine: "Writing to files of your own project would be fine.",
		},
		match: matching(overwritesVital, effect.Write, effect.Move),
	},
	{
		Rule: Rule{
			ID: "open-system-permissions", Category: "destructive_file", Severity: High, CWE: "CWE-732",
			Seen: "it changes mode or owner of {}, a tree of the system.", Fine: "chmod on files of your own project would be fine.",
		},
		match: matching(opensTree, effect.Mode),
	},
	{
		Rule: Rule{
			ID: "encrypt-files", Category: "destructive_file", Severity: Critical, CWE: "CWE-506",
			Seen: "it replaces the files in {} by encrypted copies, as ransomware does.", Fine: "Encrypting one file and keeping it would be fine.",
		},
		match: finding(encryptsFiles, effect.Write),
	},
	{
		Rule: Rule{
			ID: "delete-database", Category: "destructive_cloud_db", Severity: Medium, CWE: "CWE-732",
			Seen: "it runs {}, which removes data for good.", Fine: "Reading, or deleting single rows by a condition, would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			what, ok := strings.CutPrefix(e.Target.Text, "sql ")

			return what, ok
		}, effect.Call),
	},
	{
		Rule: Rule{
			ID: "delete-cloud", Category: "destructive_cloud_db", Severity: Medium, CWE: "CWE-732",
			Seen: "it runs {}, which removes resources outside the sandbox.", Fine: "Listing or describing them would be fine.",
		},
		match: matching(deletesBy(cloudDeletes), effect.Exec),
	},
	{
		Rule: Rule{
			ID: "delete-remote-data", Category: "destructive_cloud_db", Severity: High, CWE: "CWE-732",
			Seen: "it runs {}, which removes data outside the sandbox for good.", Fine: "Listing it, or a dry run, would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			if d, ok := deletesBy(dataDeletes)(f, e); ok {
				return d, !madeAnew(f, e)
			}

			return deletesRemote(f, e)
		}, effect.Exec),
	},
}

func deletesTree(f *facts, e *fact) (string, bool) {
	if dir, ok := strings.CutPrefix(e.Target.Ref, program.ListRef); ok && e.path == place.Resolve(dir+"/"+effect.HoleText, f.a.cwd) && place.Classify(place.Resolve(dir, f.a.cwd)).Has(place.Tree) {
		return show(dir), e.Flags.Has(effect.FlagRecursive)
	}

	if !e.class.Has(place.Tree) {
		return "", false
	}

	// Without recursion only what a glob names goes, and directories stay; a
	// search or a loop over it takes file by file.
	if !e.Flags.Has(effect.FlagRecursive) && !e.Flags.Has(effect.FlagLoop) && !strings.ContainsAny(path.Base(e.path), "*") {
		return "", false
	}

	return show(e.path), true
}

func deletesVital(f *facts, e *fact) (string, bool) {
	p, c := e.path, e.class

	if e.Kind == effect.Move {
		// A move takes its source away; moving a system file aside for a backup
		// beside it is ordinary.
		if e.Flags.Has(effect.FlagCopy) || len(e.Args) == 0 {
			return "", false
		}

		p = place.Resolve(e.Args[0].Text, f.a.cwd)
		c = place.Classify(p)

		switch {
		case e.Target.Text == "/dev/null" && c.Has(place.Vital|place.Tree):
			return show(p), true
		case c.Has(place.Tree) && !isGlob(p):
			return show(p), true
		}

		return "", false
	}

	// A path whose directories are not known is not known to be the system's,
	// except where it was searched for there.
	if strings.Contains(p, effect.HoleText) && e.Target.Ref != "" {
		return "", false
	}

	if !c.Has(place.Vital) || c.Has(place.Tree) && (e.Flags.Has(effect.FlagRecursive) || strings.Contains(path.Base(p), "*")) {
		return "", false
	}

	if c.Has(place.Tree) || e.Via == "rmdir" || c.Has(place.Log) || e.Via == "find -delete" && strings.HasSuffix(p, effect.HoleText) && !c.Has(place.Binary) {
		return "", false
	}

	return show(p), true
}

func isGlob(p string) bool { return strings.ContainsAny(p, "*?[") }

func overwritesDevice(f *facts) []hit {
	return matching(func(f *facts, e *fact) (string, bool) {
		if e.Kind == effect.Move {
			if e.Flags.Has(effect.FlagCopy) || len(e.Args) > 0 {
				return show(e.path), e.class.Has(place.Device)
			}

			return "", false
		}

		return show(e.path), e.class.Has(place.Device)
	}, effect.Write, effect.Move).find(f)
}

func formats(f *facts) []hit {
	return matching(func(f *facts, e *fact) (string, bool) {
		n := e.name()

		switch {
		case strings.HasPrefix(n, "mkfs"), oneOf(n, "wipefs", "blkdiscard", "mke2fs", "mkswap"):
			for _, a := range e.Args {
				if place.IsBlockDevice(a.Text) {
					return show(a.Text), n != "wipefs" || e.arg("-a", "--all", "-af")
				}
			}
		case n == "parted" && e.arg("mklabel", "mktable", "rm", "mkpart"), n == "cryptsetup" && e.arg("luksFormat", "erase", "luksErase"), n == "sgdisk" && e.arg("-Z", "--zap-all", "-o"),
			n == "hdparm" && e.argHas("--security-erase"):
			for _, a := range e.Args {
				if place.IsBlockDevice(a.Text) {
					return show(a.Text), true
				}
			}
		case removesVolume(e):
			return show(strings.TrimSpace(n + " " + e.lastOperand())), true
		case n == "shred" || n == "wipe":
			for _, a := range e.Args {
				if place.IsBlockDevice(a.Text) {
					return show(a.Text), true
				}
			}
		}

		return "", false
	}, effect.Exec).find(f)
}

// removesVolume says whether a volume manager is told to give a volume up.
func removesVolume(e *fact) bool {
	switch e.name() {
	case "lvremove", "vgremove", "pvremove":
		return e.operand(0) != "" && !e.arg("-t", "--test", "--help")
	case "zpool":
		return e.operand(0) == "destroy" || e.operand(0) == "labelclear"
	case "zfs":
		return e.operand(0) == "destroy" && e.argHas("-r", "-R") && !e.arg("-n", "-nv", "-nr", "-rn")
	case "mdadm":
		return e.arg("--zero-superblock")
	case "nvme":
		return oneOf(e.operand(0), "format", "sanitize")
	}

	return false
}

func overwritesVital(f *facts, e *fact) (string, bool) {
	c := e.class

	if e.Kind == effect.Move && path.Dir(e.path) != "/usr" {
		return "", false
	}

	switch {
	case strings.Contains(e.path, effect.HoleText):
		return "", false
	case path.Dir(e.path) == "/usr" && e.path != "/usr/tmp":
		// Nothing of anybody's own lives directly in /usr.
		return show(e.path), true
	case c.Has(place.Binary) && !e.Flags.Has(effect.FlagAppend):
		return show(e.path), !strings.Contains(e.path, "/site-packages/")
	case e.Flags.Has(effect.FlagTruncate) && c.Has(place.Vital) && !c.Has(place.Log) && !c.Has(place.Kernel|place.HostEscape):
		return show(e.path), true
	}

	return "", false
}

func opensTree(f *facts, e *fact) (string, bool) {
	if !e.class.Has(place.Tree) && !e.class.Has(place.AuthFile|place.Binary) {
		return "", false
	}

	mode := e.Data.Text

	if e.class.Has(place.Tree) {
		if !e.Flags.Has(effect.FlagRecursive) && !strings.HasSuffix(e.path, "*") {
			return show(e.path), mode == "000" || mode == "0"
		}

		if strings.HasPrefix(e.path, "/usr/local") || strings.HasPrefix(e.path, "/opt") || strings.HasPrefix(e.path, "/srv") ||
			strings.HasPrefix(e.path, "/home/") || strings.HasPrefix(e.path, "/var/www") || strings.HasPrefix(e.path, "/mnt") || strings.HasPrefix(e.path, "/media") {
			return show(e.path), mode == "000" || mode == "0"
		}

		return show(e.path), openMode(mode) || mode == "000" || mode == "0" || mode == "-x" || strings.HasPrefix(e.Via, "chown") || mode == "-rwx" || mode == "a-rwx"
	}

	return show(e.path), e.class.Has(place.AuthFile) && openMode(mode)
}

// openMode says whether a mode lets everybody write.
func openMode(mode string) bool {
	mode = strings.TrimPrefix(mode, "0o")

	switch {
	case mode == "":
		return false
	case strings.Trim(mode, "01234567") == "":
		return strings.IndexByte("2367", mode[len(mode)-1]) >= 0
	}

	for part := range strings.SplitSeq(mode, ",") {
		who, what, ok := strings.Cut(part, "+")
		if !ok {
			who, what, ok = strings.Cut(part, "=")
		}

		if ok && strings.Contains(what, "w") && (who == "" || strings.ContainsAny(who, "ao")) && who != "" {
			return true
		}
	}

	return false
}

// encryptsFiles finds that the files of a whole home or system are replaced by
// what nobody can read: in place, or under another name beside which the
// original goes.
func encryptsFiles(f *facts) []hit {
	var out []hit

	f.each(func(w *fact) {
		if len(out) > 0 || !unreadable(w) || w.Target.IsConst() && !isGlob(w.path) {
			return
		}

		root := w.path
		if i := strings.IndexAny(root, effect.HoleText+"*?["); i >= 0 {
			root = root[:i]
		}

		if root = place.Resolve(root, f.a.cwd); !wideRoot(root) && !ownFiles(root) {
			return
		}

		if w.Data.Taint&effect.TaintFile == 0 {
			out = append(out, hit{w.Span, show(root)})

			return
		}

		replaced := func(e *fact, p string) {
			if len(out) == 0 && strings.HasPrefix(w.path, strings.TrimSuffix(p, "*")) && (p != w.path || e.Kind != effect.Delete) {
				out = append(out, hit{e.Span, show(root)})
			}
		}

		f.each(func(e *fact) {
			if e.Kind == effect.Read && e.path != w.path {
				return
			}

			if e.Kind != effect.Move {
				replaced(e, e.path)
			} else if len(e.Args) > 0 {
				replaced(e, place.Resolve(e.Args[0].Text, f.a.cwd))
			}
		}, effect.Delete, effect.Move, effect.Read)
	}, effect.Write)

	return out
}

// unreadable says whether what is written cannot be read without a key, or at
// all.
func unreadable(w *fact) bool {
	if w.Data.Has(effect.TaintFile) {
		return w.Data.Has(effect.TaintRandom|effect.TaintEncoded) || w.Via == "openssl" || w.Via == "gpg"
	}

	return w.Data.Taint == effect.TaintRandom && w.Flags.Has(effect.FlagLoop)
}

// ownFiles says whether a folder is one in which people keep files of their own.
func ownFiles(p string) bool {
	dir, name := path.Split(p)

	return oneOf(name, "Documents", "Desktop", "Pictures", "Downloads", "Photos", "Music", "Videos") && place.Classify(path.Clean(dir)).Has(place.Tree)
}
