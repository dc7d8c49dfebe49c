package program

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// recursive is what programs that always remove trees do.
const recursive = effect.FlagRecursive

// models is the one table of programs.
var models map[string]model

func init() {
	models = map[string]model{
		// Shells and interpreters.
		"sh": interp(&shellInterp), "bash": interp(&shellInterp), "dash": interp(&shellInterp), "zsh": interp(&shellInterp),
		"ksh": interp(&shellInterp), "mksh": interp(&shellInterp), "ash": interp(&shellInterp), "rbash": interp(&shellInterp),
		"csh": interp(&shellInterp), "tcsh": interp(&shellInterp), "pwsh": interp(&fishInterp), "fish": interp(&fishInterp),
		"python": python, "pypy": python, "pypy3": python, "ipython": python, "ipython3": python,
		"perl": interp(&perlInterp), "ruby": interp(&rubyInterp), "jruby": interp(&rubyInterp), "irb": interp(&rubyInterp),
		"php": interp(&phpInterp), "node": interp(&nodeInterp), "nodejs": interp(&nodeInterp), "bun": interp(&nodeInterp),
		"deno": interp(&denoInterp), "tsx": interp(&denoInterp), "ts-node": interp(&denoInterp),
		"lua": interp(&luaInterp), "luajit": interp(&luaInterp), "Rscript": interp(&rInterp), "R": interp(&rInterp),
		"java": javaModel, "javac": javaModel, "jshell": javaModel, "pytest": pytest, "py.test": pytest, "tclsh": interp(&tclInterp), "expect": interp(&tclInterp), "osascript": quiet,

		// Programs that run others.
		"find": findModel, "gfind": findModel, "xargs": xargs, "gxargs": xargs, "parallel": parallel,
		"watch": joined("n", " interval ", 0, 0), "entr": joined("", "", 0, 0), "ssh": ssh,
		"autossh": ssh, "dbclient": ssh, "script": codeOption("-c --command"), "su": codeOption("-c --command --session-command"),
		"mcp-gateway": mcpGateway, "sg": codeOption("-c"), "newgrp": codeOption("-c"), "capsh": codeOption("-c"), "tmux": lastShell("new-session new send-keys send new-window neww split-window splitw run-shell run"),
		"screen": afterOptions("SXcehpsTt"), "at": schedule, "batch": schedule, "crontab": crontab,
		"vi": editor, "vim": editor, "nvim": editor, "ex": editor, "view": editor, "nano": quiet, "emacs": quiet, "ed": editor,
		"make": makeModel, "gmake": makeModel, "git": gitModel, "docker": containerRun, "podman": containerRun, "nerdctl": containerRun,
		"kubectl": containerRun, "oc": containerRun, "lxc": containerRun, "docker-compose": containerRun, "ctr": containerRun,

		// Text.
		"echo": echo, "printf": printf, "cat": cat, "tac": sameLine(""), "head": head, "tail": head,
		"sort": sameLine("koStT"), "uniq": sameLine("fsw"), "rev": rev, "tr": tr, "rot13": rot13, "cut": cut, "sed": sed, "gsed": sed, "awk": awk, "gawk": awk,
		"mawk": awk, "nawk": awk, "grep": grep, "egrep": grep, "fgrep": grep, "zgrep": grep, "rg": grep, "ag": grep, "ack": grep,
		"base64": decoder("base64", decodeBase64, encodeBase64, "wio", "d D decode"), "gbase64": decoder("base64", decodeBase64, encodeBase64, "wi", "d D decode"),
		"basenc": decoder("base64", decodeBase64, nil, "w", "d decode"), "base32": decoder("base32", decodeBase32, nil, "w", "d decode"),
		"b64decode": decoder("base64", decodeBase64, nil, "o", ""), "b64encode": filter("", "", 0), "uudecode": decoder("uuencode", nil, nil, "o", ""),
		"xxd": xxd, "hexdump": filter("efns", "", 0), "od": filter("AjNtSw", "", 0), "openssl": opensslModel,
		"seq": seq, "jot": seq, "yes": endless, "fold": sameLine("w"), "fmt": filter("w", "", 0), "nl": filter("", "", 0), "pr": filter("", "", 0),
		"paste": filter("ds", "", 0), "column": filter("ts", "", 0), "join": filter("12jt", "", 0), "comm": filter("", "", 0),
		"strings": filter("ntse", "", 0), "less": cat, "more": cat, "most": cat, "bat": cat, "batcat": cat, "zcat": compress(true, "gzip"),
		"iconv": filter("ft", " from-code to-code ", 0), "dos2unix": sameLine(""), "jq": filter("", " arg argjson slurpfile rawfile indent ", 1),
		"yq": filter("", "", 1), "wc": filter("", "", 0), "md5sum": quiet, "sha1sum": quiet, "sha256sum": quiet, "sha512sum": quiet,
		"diff": filter("U", "", 0), "cmp": quiet, "vimdiff": quiet, "split": filter("bnla", "", 0), "csplit": filter("", "", 0), "tee": tee, "sponge": tee,
		"pv": cat, "buffer": cat, "mbuffer": cat, "gpg": decrypter("oru", " output recipient passphrase passphrase-file "), "gpg2": decrypter("oru", " output recipient passphrase passphrase-file "), "age": decrypter("ori", " output recipient identity "),
		"xmllint": filter("", "", 0), "highlight": cat,

		// Files.
		"rm": remove(0), "unlink": remove(0), "rmdir": remove(0), "shred": remove(0), "srm": remove(0), "wipe": remove(0), "trash": remove(0),
		"trash-put": remove(0), "rimraf": remove(recursive), "del-cli": remove(recursive), "cp": copyTo(true), "gcp": copyTo(true),
		"mv": copyTo(false), "install": copyTo(true), "ln": link, "chmod": mode, "chown": mode, "chgrp": mode, "setfacl": mode, "chattr": mode,
		"setcap": mode, "dd": dd, "dcfldd": dd, "truncate": resize, "fallocate": resize, "tar": archive, "bsdtar": archive, "gtar": archive,
		"zip": archive, "unzip": unzip, "7z": archive, "7za": archive, "rar": archive, "gzip": compress(false, "gzip"), "gunzip": compress(true, "gzip"),
		"bzip2": compress(false, "bzip2"), "bunzip2": compress(true, "bzip2"), "bzcat": compress(true, "bzip2"), "xz": compress(false, "xz"),
		"lzma": compress(false, "xz"), "unlzma": compress(true, "xz"), "lzcat": compress(true, "xz"), "zstdcat": compress(true, "zstd"), "unxz": compress(true, "xz"), "xzcat": compress(true, "xz"), "zstd": compress(false, "zstd"), "unzstd": compress(true, "zstd"), "lz4": compress(false, "lz4"),
		"mktemp": mktemp, "tempfile": mktemp, "basename": pathName(path.Base), "dirname": pathName(path.Dir),
		"realpath": pathName(path.Clean), "readlink": pathName(path.Clean), "which": lookUp, "type": lookUp, "whereis": lookUp, "command": lookUp,
		"touch": create, "mkdir": create, "mkfifo": create, "mknod": create, "ls": list, "stat": quiet, "file": quiet, "du": quiet, "df": quiet,
		"test": quiet, "[": quiet, "true": create, "false": create, ":": create, "sleep": create,

		// Network.
		"curl": curl, "curlie": curl, "wget": wget, "aria2c": downloader("o out", "odxskj", " out dir max-connection-per-server split header user-agent "), "axel": downloader("o output", "onsHU", " output num-connections "),
		"lwp-download": downloader("", "", ""), "lwp-request": downloader("", "mbHC", ""), "GET": downloader("", "", ""), "fetch": downloader("o", "o", ""),
		"lynx": downloader("", "", " useragent "), "w3m": downloader("", "", ""), "links": downloader("", "", ""), "elinks": downloader("", "", ""),
		"http": httpie, "https": httpie, "httpie": httpie, "xh": httpie, "nc": netcat, "ncat": netcat, "netcat": netcat,
		"nc.openbsd": netcat, "nc.traditional": netcat, "telnet": netcat, "socat": socat, "scp": remoteCopy("PFiolcJSDX", ""), "pscp": remoteCopy("Pi", ""),
		"rsync":  remoteCopy("efTMB@", " rsh exclude include filter files-from rsync-path port bwlimit max-size out-format log-file compare-dest link-dest backup-dir suffix password-file chmod chown "),
		"rclone": cloudCopy, "aws": cloudCopy, "gsutil": cloudCopy, "gcloud": cloudCopy, "az": cloudCopy, "gh": cloudCopy, "mc": cloudCopy, "s3cmd": cloudCopy,
		"sftp": ssh, "ftp": netcat, "lftp": netcat, "tftp": tftp, "dig": nameLookup("pbcfkqtxy"), "nslookup": nameLookup(""), "host": nameLookup("tcNRW"), "drill": nameLookup(""),
		"ping": nameLookup("cisWwtpQIMl"), "ping6": nameLookup("cisWwtpQIMl"), "resolvectl": nameLookup(""), "getent": getent, "mail": mailer, "mailx": mailer,
		"sendmail": mailer, "mutt": mailer, "msmtp": mailer, "swaks": mailer,

		// Host and user.
		"whoami": info("user"), "id": info("user"), "hostname": info("hostname"), "uname": info("os"), "ifconfig": info("network"), "ip": info("network"),
		"netstat": info("network"), "ss": info("network"), "ps": processes, "w": info("user"), "who": info("user"), "last": info("user"),
		"hostnamectl": info("hostname"), "arp": info("network"), "lscpu": quiet, "nproc": quiet, "date": quiet, "uptime": quiet,
		"printenv": printenv, "env": printenv, "kill": kill, "pkill": kill, "killall": kill, "ffmpeg": ffmpeg, "avconv": ffmpeg, "arecord": capture("sound"), "parecord": capture("sound"), "parec": capture("sound"), "pw-record": capture("sound"),
		"xinput": xinput, "xev": capture("keys"), "showkey": capture("keys"), "logkeys": capture("keyboard"), "evtest": capture("keys"), "xspy": capture("keyboard"), "fswebcam": capture("picture"), "streamer": capture("picture"),
		"scrot": capture("screen"), "gnome-screenshot": capture("screen"), "maim": capture("screen"), "import": windowGrab, "xwd": capture("screen"), "grim": capture("screen"), "xclip": xclip, "xsel": xclip,
		"skill": kill, "killall5": kill,

		// Packages.
		"pip":  installer("pip", "install download", "riceft", " requirement index-url extra-index-url target constraint prefix root find-links trusted-host timeout cache-dir platform python-version editable upgrade-strategy "),
		"pip3": installer("pip", "install download", "riceft", " requirement index-url extra-index-url target constraint prefix root find-links trusted-host timeout cache-dir platform python-version editable upgrade-strategy "),
		"pipx": installer("pip", "install run", "", ""), "easy_install": installer("pip", "", "", ""),
		"npm": installer("npm", "install i add ci isntall in create init", "", " prefix registry loglevel tag workspace cache "), "pnpm": installer("npm", "install i add create", "C", " filter registry dir "),
		"yarn": installer("npm", "add install create", "", " registry cwd "), "apt": installer("apt", "install update upgrade full-upgrade dist-upgrade source build-dep", "oct", " option "),
		"apt-get": installer("apt", "install update upgrade dist-upgrade source build-dep", "oct", " option target-release "), "aptitude": installer("apt", "install update", "o", ""),
		"apk": installer("apk", "add update upgrade", "Xpt", " repository virtual root "), "yum": installer("yum", "install update localinstall", "", ""), "dnf": installer("dnf", "install update", "", ""),
		"gem": installer("gem", "install", "v", " version source "), "cargo": installer("cargo", "install add fetch", "", " version git branch features "), "go": installer("go", "install get", "", ""),
		"brew": installer("brew", "install", "", ""), "pacman": quiet, "conda": installer("conda", "install create", "cnp", " name channel prefix "), "uv": installer("pip", "add sync", "", ""),
		"poetry": installer("pip", "add install", "", ""),

		// Data.
		"mysql": database("-e --execute"), "mariadb": database("-e --execute"), "psql": database("-c --command"), "sqlite3": database("-cmd"), "mongo": database("--eval"),
		"mongosh": database("--eval"), "clickhouse-client": database("-q --query"), "redis-cli": quiet,
	}

}

// lastShell runs the last operand of some subcommands as shell text.
func lastShell(subcommands string) model {
	return func(m *Machine, c *Call) effect.Value {
		if len(c.Args) < 2 {
			return effect.Unknown(effect.TaintOutput)
		}

		sub := " " + subcommands + " "

		for _, a := range c.Args[:len(c.Args)-1] {
			if !strings.Contains(sub, " "+a.Text+" ") {
				continue
			}

			last := c.Args[len(c.Args)-1]
			if (last.Text == "Enter" || last.Text == "C-m") && len(c.Args) > 2 {
				last = c.Args[len(c.Args)-2]
			}

			return m.runText(c, last, "bash", Base(c.Name.Text))
		}

		return effect.Unknown(effect.TaintOutput)
	}
}

// afterOptions runs the operands as a command.
func afterOptions(short string) model {
	return func(m *Machine, c *Call) effect.Value {
		if in, ok := after(c, c.Args, short, "", 0, effect.FlagBackground); ok {
			return m.start(in)
		}

		return effect.Unknown(effect.TaintOutput)
	}
}

// Known says whether a name is that of a program with a model or a wrapper.
func Known(base string) bool {
	_, model := models[base]
	_, wrapper := wrappers[base]

	return model || wrapper || isPython(base)
}
