package static

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
	"github.com/e2bguard/e2bguard/guard/static/program"
)

var minerRules = []row{
	{
		Rule: Rule{
			ID: "crypto-miner", Category: "crypto_miner", Severity: Critical, CWE: "CWE-400",
			Seen: "it mines cryptocurrency ({}).", Fine: "Computing that your task needs would be fine.",
		},
		match: finding(minerMatch, effect.Exec, effect.Connect, effect.Receive, effect.Install, effect.Import, effect.Send, effect.Write, effect.Call),
	},
}

var miners = setOf("xmrig", "xmr-stak", "xmr-stak-rx", "minerd", "cpuminer", "cpuminer-multi", "cgminer", "bfgminer", "ethminer", "lolMiner", "lolminer", "t-rex", "nbminer",
	"phoenixminer", "PhoenixMiner", "gminer", "teamredminer", "srbminer", "SRBMiner-MULTI", "ccminer", "nheqminer", "claymore", "kdevtmpfsi", "kinsing", "xmrigDaemon", "xmrig-cuda",
	"miniZ", "rigel", "bzminer", "wildrig", "cryptodredge", "randomx-miner", "xmrig-notls", "ethdcrminer64", "sgminer", "nanominer", "onezerominer", "verusminer", "hellminer")

// minerMarks are in what miners are told or say, and in nothing else.
var minerMarks = []string{"stratum+tcp://", "stratum+ssl://", "stratum2+", "stratum+tls://", "mining.subscribe", "mining.authorize", "--donate-level", "--coin=monero", "--coin monero", "cryptonight", "randomx/0", "rx/0", "--algo=rx", "coinhive.min.js", "CoinHive.Anonymous"}

var minerWords = place.NewWords(minerMarks...)

func minerMatch(f *facts) []hit {
	out := matching(func(f *facts, e *fact) (string, bool) {
		n := e.name()
		if oneOf(n, "grep", "echo", "printf", "pkill", "pgrep", "killall", "rm", "man", "which", "cat", "ls", "find", "sed", "awk", "egrep", "rg", "git-grep", "apt-cache", "type") {
			return "", false
		}

		if miners[n] || miners[strings.ToLower(n)] {
			return show(n), !e.arg("--help", "--version")
		}

		for _, a := range e.Args {
			if mark := minerMark(a.Text); mark != "" && !shells[n] {
				return show(mark), true
			}

			if !program.Known(n) && (strings.Contains(a.Text, "pool") || strings.Contains(a.Text, "xmr") || strings.Contains(a.Text, "mine")) && place.ClassifyHost(a.Text).Has(place.Pool) {
				return show(a.Text), true
			}

			if oneOf(n, "docker", "podman", "nerdctl", "kubectl") && minerName(a.Text) {
				return show(a.Text), true
			}
		}

		return "", false
	}, effect.Exec).find(f)

	return append(out, matching(func(f *facts, e *fact) (string, bool) {
		switch e.Kind {
		case effect.Connect:
			if e.host.Has(place.Pool) || strings.HasPrefix(e.Target.Text, "stratum") {
				return show(e.Target.Text), true
			}

			return speaksStratum(f, e)
		case effect.Receive, effect.Install, effect.Import:
			return show(e.Target.Text), minerName(e.Target.Text)
		case effect.Send, effect.Write, effect.Call:
			// Scripts are read as such; text is only talk.
			if e.Kind == effect.Write && !oneOf(path.Ext(e.path), ".json", ".conf", ".cfg", ".ini", ".yaml", ".yml", ".toml") {
				return "", false
			}

			if mark := minerMark(e.Data.Text); mark != "" {
				return show(mark), true
			}

			for i := range e.Args {
				if mark := minerMark(e.Args[i].Text); mark != "" {
					return show(mark), true
				}
			}
		}

		return "", false
	}, effect.Connect, effect.Receive, effect.Install, effect.Import, effect.Send, effect.Write, effect.Call).find(f)...)
}

// speaksStratum says whether code that opens a connection of its own spells
// out the first words of a miner's protocol, wherever it puts them together.
func speaksStratum(f *facts, e *fact) (string, bool) {
	if e.host.Has(place.Loopback) {
		return "", false
	}

	for _, word := range []string{"mining.subscribe", "mining.authorize", "mining.submit"} {
		for _, q := range []string{`"`, `'`, "`", `\"`} {
			if strings.Contains(f.a.subject.Text, q+word+q) {
				return show(word), true
			}
		}
	}

	return "", false
}

func minerMark(s string) string {
	if !minerWords.In(s) {
		return ""
	}

	for _, m := range minerMarks {
		if strings.Contains(s, m) {
			return m
		}
	}

	return ""
}

// minerName says whether a package, image or URL is named after a miner.
func minerName(s string) bool {
	s = strings.ToLower(s)
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '/' || r == ':' || r == '@' || r == '=' }) {
		name, _, _ := strings.Cut(part, ".")
		if miners[program.Base(name)] || strings.HasPrefix(part, "xmrig") || strings.HasPrefix(part, "coin-hive") || strings.HasPrefix(part, "coinhive") || strings.HasPrefix(part, "cryptonight") {
			return true
		}
	}

	return false
}
