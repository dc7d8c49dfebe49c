package program

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// wrapper finds the command that a program starts on the caller's behalf; ok
// is false if it starts none.
type wrapper func(m *Machine, c *Call) (inner Call, ok bool)

var wrappers map[string]wrapper

func init() {
	wrappers = map[string]wrapper{
		"sudo":                 prefix("ugpCTrtUhRD", " user group prompt chdir host role type other-user chroot command-timeout ", 0, effect.FlagRoot),
		"doas":                 prefix("uC", "", 0, effect.FlagRoot),
		"pkexec":               prefix("", " user ", 0, effect.FlagRoot),
		"gosu":                 prefix("", "", 1, 0),
		"su-exec":              prefix("", "", 1, 0),
		"setpriv":              prefix("", " reuid regid groups inh-caps bounding-set ", 0, 0),
		"env":                  env,
		"nice":                 prefix("n", " adjustment ", 0, 0),
		"ionice":               prefix("cnpPu", " class classdata pid ", 0, 0),
		"chrt":                 prefix("TPD", "", 1, 0),
		"taskset":              prefix("p", "", 1, 0),
		"timeout":              prefix("sk", " signal kill-after ", 1, 0),
		"gtimeout":             prefix("sk", " signal kill-after ", 1, 0),
		"nohup":                prefix("", "", 0, effect.FlagBackground),
		"stdbuf":               prefix("ioe", " input output error ", 0, 0),
		"unbuffer":             prefix("", "", 0, 0),
		"setsid":               prefix("", "", 0, effect.FlagBackground),
		"daemonize":            prefix("aceoplu", "", 0, effect.FlagBackground),
		"time":                 prefix("fo", " format output ", 0, 0),
		"command":              command,
		"exec":                 prefix("a", "", 0, 0),
		"builtin":              prefix("", "", 0, 0),
		"noglob":               prefix("", "", 0, 0),
		"nocorrect":            prefix("", "", 0, 0),
		"busybox":              prefix("", "", 0, 0),
		"toybox":               prefix("", "", 0, 0),
		"chroot":               chroot,
		"proot":                prefix("rbwq", "", 0, effect.FlagElsewhere),
		"fakeroot":             prefix("lsib", "", 0, 0),
		"fakechroot":           prefix("", "", 0, 0),
		"unshare":              recorded(prefix("RwSG", " root wd setuid setgid map-user map-group propagation setgroups ", 0, 0)),
		"nsenter":              recorded(prefix("tSGrw", " target setuid setgid ", 0, 0)),
		"setarch":              prefix("", "", 1, 0),
		"linux32":              prefix("", "", 0, 0),
		"linux64":              prefix("", "", 0, 0),
		"prlimit":              prefix("pomM", " pid ", 0, 0),
		"cpulimit":             prefix("lpePc", " limit pid exe ", 0, 0),
		"strace":               prefix("oepsaSuEPbIOX", " output trace ", 0, 0),
		"ltrace":               prefix("oepsaSulnx", " output ", 0, 0),
		"valgrind":             prefix("", "", 0, 0),
		"catchsegv":            prefix("", "", 0, 0),
		"rlwrap":               prefix("bcCDfFgHlmMNoOPqsSt", "", 0, 0),
		"torsocks":             recorded(prefix("aup", "", 0, 0)),
		"torify":               prefix("", "", 0, 0),
		"proxychains":          recorded(prefix("f", "", 0, 0)),
		"proxychains4":         recorded(prefix("f", "", 0, 0)),
		"tsocks":               prefix("", "", 0, 0),
		"sshpass":              recorded(prefix("pfdP", "", 0, 0)),
		"tini":                 prefix("pe", "", 0, 0),
		"dumb-init":            prefix("r", "", 0, 0),
		"catatonit":            prefix("", "", 0, 0),
		"systemd-run":          recorded(prefix("pEMuHtgr", " unit property setenv slice description uid gid nice working-directory on-active on-boot on-calendar timer-property machine host ", 0, 0)),
		"systemd-inhibit":      prefix("", " what who why mode ", 0, 0),
		"dbus-run-session":     prefix("", " config-file dbus-daemon ", 0, 0),
		"ssh-agent":            prefix("atE", "", 0, 0),
		"caffeinate":           prefix("tw", "", 0, 0),
		"chpst":                prefix("uUbnmdopfcrte/", "", 0, 0),
		"softlimit":            prefix("madlfnoprst", "", 0, 0),
		"setuidgid":            prefix("", "", 1, 0),
		"perf":                 subcommand("stat", "record"),
		"uv":                   subcommand("run"),
		"poetry":               subcommand("run"),
		"pipenv":               subcommand("run"),
		"pdm":                  subcommand("run"),
		"hatch":                subcommand("run"),
		"rye":                  subcommand("run"),
		"conda":                subcommand("run"),
		"micromamba":           subcommand("run"),
		"mamba":                subcommand("run"),
		"bundle":               subcommand("exec"),
		"npm":                  subcommand("exec", "x"),
		"pnpm":                 subcommand("exec", "dlx"),
		"yarn":                 subcommand("exec", "dlx"),
		"npx":                  prefix("pc", " package call ", 0, 0),
		"bunx":                 prefix("", "", 0, 0),
		"direnv":               subcommand("exec"),
		"dotenv":               prefix("fe", " file ", 0, 0),
		"firejail":             prefix("", "", 0, 0),
		"bwrap":                prefix("", " bind ro-bind dev proc tmpfs setenv chdir dev-bind symlink ", 0, effect.FlagElsewhere),
		"start-stop-daemon":    startStop,
		"ld-linux-x86-64.so.2": prefix("", " library-path preload argv0 ", 0, 0),
		"ld-linux.so.2":        prefix("", " library-path preload ", 0, 0),
		"ld.so":                prefix("", " library-path preload ", 0, 0),
		"ld-musl-x86_64.so.1":  prefix("", " library-path preload ", 0, 0),
		"multitime":            prefix("n", "", 0, 0),
		"gdb":                  gdbArgs,
		"runuser":              runuser,
		"flock":                flock,
		"xvfb-run":             prefix("aefnpsw", " server-args server-num error-file auth-file ", 0, 0),
		"aws-vault":            subcommand("exec"),
		"op":                   subcommand("run"),
		"doppler":              subcommand("run"),
	}
}

// prefix is a wrapper that takes options, skip operands, and then a command.
// Assignments before the command are skipped as env, sudo and time do.
func prefix(short, long string, skip int, flags effect.Flag) wrapper {
	return func(m *Machine, c *Call) (Call, bool) {
		return after(c, c.Args, short, long, skip, flags)
	}
}

// recorded is a wrapper whose own start matters too.
func recorded(w wrapper) wrapper {
	return func(m *Machine, c *Call) (Call, bool) {
		m.exec(c, Base(c.Name.Text))

		in, ok := w(m, c)
		if !ok {
			in, ok = Call{Name: effect.Const("true"), Span: c.Span}, true
		}

		return in, ok
	}
}

// after finds the command in args.
func after(c *Call, args []effect.Value, short, long string, skip int, flags effect.Flag) (Call, bool) {
	for i := 0; i < len(args); i++ {
		a := args[i].Text

		switch {
		case a == "--":
			if skip == 0 || i+1+skip > len(args) {
				return inner(c, args[i+1:], flags)
			}
		case strings.HasPrefix(a, "--"):
			if !strings.Contains(a, "=") && strings.Contains(long, " "+a[2:]+" ") {
				i++
			}
		case len(a) > 1 && a[0] == '-':
			for j := 1; j < len(a); j++ {
				if strings.IndexByte(short, a[j]) >= 0 {
					if j+1 == len(a) {
						i++
					}

					break
				}
			}
		case isAssignment(a):
		case skip > 0:
			skip--
		default:
			return inner(c, args[i:], flags)
		}
	}

	return Call{}, false
}

func inner(c *Call, args []effect.Value, flags effect.Flag) (Call, bool) {
	if len(args) == 0 {
		return Call{}, false
	}

	return Call{Name: args[0], Args: args[1:], Stdin: c.Stdin, Piped: c.Piped, Span: c.Span, Flags: c.Flags | flags}, true
}

func isAssignment(a string) bool {
	name, _, ok := strings.Cut(a, "=")
	if !ok || name == "" {
		return false
	}

	for i := range len(name) {
		b := name[i]
		if b != '_' && (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') {
			return false
		}
	}

	return true
}

// subcommand is a program of many uses that starts a command in some of them.
func subcommand(names ...string) wrapper {
	return func(m *Machine, c *Call) (Call, bool) {
		for i, a := range c.Args {
			if strings.HasPrefix(a.Text, "-") {
				continue
			}

			for _, n := range names {
				if a.Text == n {
					return after(c, c.Args[i+1:], "np", " name prefix package python with project directory extra group env-file account profile ", 0, 0)
				}
			}

			return Call{}, false
		}

		return Call{}, false
	}
}

// env sets variables and starts a command; -S splits a string.
func env(m *Machine, c *Call) (Call, bool) {
	for i, a := range c.Args {
		text, ok := strings.CutPrefix(a.Text, "--split-string=")
		if !ok {
			text, ok = strings.CutPrefix(a.Text, "-S")
			if !ok && len(a.Text) > 2 && a.Text[0] == '-' && a.Text[1] != '-' && strings.HasSuffix(a.Text, "S") {
				ok = true
			}
		}

		if ok {
			rest := c.Args[i+1:]
			if text == "" && len(rest) > 0 {
				text, rest = rest[0].Text, rest[1:]
			}

			words := make([]effect.Value, 0, 8)
			for f := range strings.FieldsSeq(text) {
				words = append(words, effect.Const(strings.Trim(f, `"'`)))
			}

			return after(c, append(words, rest...), "uC", " unset chdir ", 0, 0)
		}
	}

	for _, a := range c.Args {
		name, val, ok := strings.Cut(a.Text, "=")
		if !ok && !strings.HasPrefix(a.Text, "-") {
			break
		}

		if ok && isAssignment(a.Text) {
			v := a
			v.Text = val
			m.add(c, effect.Effect{Kind: effect.SetEnv, Target: effect.Const(name), Data: v})
		}
	}

	return after(c, c.Args, "uC", " unset chdir ", 0, 0)
}

// command runs a program, or with -v and -V only names it.
func command(m *Machine, c *Call) (Call, bool) {
	if len(c.Args) > 0 && (c.Args[0].Text == "-v" || c.Args[0].Text == "-V") {
		return Call{}, false
	}

	return after(c, c.Args, "", "", 0, 0)
}

// chroot runs a command with another root. A script in a prepared root does
// its work elsewhere; chroot onto a mounted host is judged by its arguments.
func chroot(m *Machine, c *Call) (Call, bool) {
	in, ok := after(c, c.Args, "", " userspec groups ", 1, effect.FlagElsewhere)
	if ok {
		m.exec(c, "chroot")
	}

	return in, ok
}

func startStop(m *Machine, c *Call) (Call, bool) {
	o := getopt(c.Args, "xapusngcrdRkN", " exec startas pidfile user group chuid chroot chdir nicelevel retry name signal ")
	if prog, ok := o.val("exec", "x", "startas", "a"); ok && (o.has("start", "S")) {
		return Call{Name: prog, Args: o.pos, Stdin: c.Stdin, Span: c.Span, Flags: c.Flags | effect.FlagBackground}, true
	}

	return Call{}, false
}

func gdbArgs(m *Machine, c *Call) (Call, bool) {
	for i, a := range c.Args {
		switch a.Text {
		case "--args", "-args":
			return inner(c, c.Args[i+1:], 0)
		case "-ex", "--ex", "--eval-command":
			if i+1 < len(c.Args) {
				if cmd, ok := strings.CutPrefix(c.Args[i+1].Text, "shell "); ok {
					m.runText(c, effect.Const(cmd), "bash", "gdb")
				} else if cmd, ok := strings.CutPrefix(c.Args[i+1].Text, "!"); ok {
					m.runText(c, effect.Const(cmd), "bash", "gdb")
				}
			}
		}
	}

	return Call{}, false
}

// runuser and su run a command, or shell text, as another user.
func runuser(m *Machine, c *Call) (Call, bool) {
	if text, ok := dashC(c.Args); ok {
		m.exec(c, "runuser")
		m.runText(c, text, "bash", "runuser -c")

		return Call{Name: effect.Const("true"), Span: c.Span}, true
	}

	o := c.Args
	for i, a := range o {
		if a.Text == "-u" && i+2 < len(o) {
			return after(c, o[i+2:], "", "", 0, 0)
		}
	}

	return Call{}, false
}

// dashC is the value of -c or --command.
func dashC(args []effect.Value) (effect.Value, bool) {
	for i, a := range args {
		switch {
		case (a.Text == "-c" || a.Text == "--command" || a.Text == "--session-command" || a.Text == "-lc") && i+1 < len(args):
			return args[i+1], true
		case strings.HasPrefix(a.Text, "--command="):
			v := a
			v.Text = a.Text[len("--command="):]

			return v, true
		}
	}

	return effect.Value{}, false
}

// flock runs a command, or shell text with -c, while holding a lock.
func flock(m *Machine, c *Call) (Call, bool) {
	if text, ok := dashC(c.Args); ok {
		m.runText(c, text, "bash", "flock -c")

		return Call{Name: effect.Const("true"), Span: c.Span}, true
	}

	return after(c, c.Args, "wEe", " timeout conflict-exit-code wait ", 1, 0)
}
