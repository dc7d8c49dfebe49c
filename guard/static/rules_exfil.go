package static

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

var exfiltrationRules = []row{
	{
		Rule: Rule{
			ID: "send-secret", Category: "data_exfiltration", Severity: Critical, CWE: "CWE-200",
			Seen: "it sends {} out of the sandbox.", Fine: "Sending data that your task made, to the service it is for, would be fine.",
		},
		match: matching(sendsSecret, effect.Send),
	},
	{
		Rule: Rule{
			ID: "send-to-drop", Category: "data_exfiltration", Severity: High, CWE: "CWE-200",
			Seen: "it sends {} to a place made to receive data from anywhere.", Fine: "Printing it, or returning it as a result, would be fine.",
		},
		match: matching(sendsToDrop, effect.Send),
	},
	{
		Rule: Rule{
			ID: "dns-tunnel", Category: "data_exfiltration", Severity: High, CWE: "CWE-200",
			Seen: "it puts {} into names it looks up, which carries data out by DNS.", Fine: "Looking up fixed names would be fine.",
		},
		match: matching(tunnelsDNS, effect.Send, effect.Connect),
	},
	{
		Rule: Rule{
			ID: "send-archive", Category: "data_exfiltration", Severity: High, CWE: "CWE-200",
			Seen: "it encodes {} and sends it out inside another format.", Fine: "Uploading one file of your task to the service it is for would be fine.",
		},
		match: matching(sendsArchive, effect.Send),
	},
	{
		Rule: Rule{
			ID: "send-host-profile", Category: "data_exfiltration", Severity: High, CWE: "CWE-200",
			Seen: "it collects facts about the machine and its user ({}) and sends them out.", Fine: "Printing them would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			n := 0

			for _, o := range e.Data.Origins() {
				if hostFacts[o] {
					n++
				}
			}

			if n == 0 && e.Data.Has(effect.TaintInfo) {
				n = f.infoKinds()
			}

			return show(strings.ReplaceAll(e.Data.Origin, "\n", ", ")), outside(e) && (n > 1 || n > 0 && suspect(e) && !strings.HasPrefix(e.Target.Text, "dns:"))
		}, effect.Send),
	},
	{
		Rule: Rule{
			ID: "send-host-facts", Category: "data_exfiltration", Severity: Medium, CWE: "CWE-200",
			Seen: "it sends facts about the machine ({}) out.", Fine: "Printing them would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Data.Origin), e.Data.Has(effect.TaintInfo) && outside(e)
		}, effect.Send),
	},
}

// hostFacts are origins that describe machine and user.
var hostFacts = setOf("user", "hostname", "os", "network", "processes", "USER", "USERNAME", "COMPUTERNAME", "HOSTNAME", "LOGNAME", "PWD", "cwd", "ip")

// infoKinds counts the kinds of facts that the snippet asks for.
func (f *facts) infoKinds() int {
	seen := map[string]bool{}

	f.each(func(e *fact) { seen[e.Target.Text] = true }, effect.Info)

	return len(seen)
}

// outside says whether data really leaves: not to the sandbox itself.
func outside(e *fact) bool {
	return !e.host.Has(place.Loopback)
}

// suspect says whether a destination is one that no ordinary service has.
func suspect(e *fact) bool {
	c := e.host

	return c.Has(place.Drop|place.Onion) || c.Has(place.Literal) && !c.Has(place.Loopback) || strings.HasPrefix(e.Target.Text, "dns:")
}

func sendsSecret(f *facts, e *fact) (string, bool) {
	d := &e.Data

	switch {
	case !outside(e):
		return sendsAccounts(f, e)
	case d.Has(effect.TaintEnvAll):
		return "\x00all environment variables", true
	case d.Has(effect.TaintCapture):
		return "\x00what was captured from the user", true
	case d.Has(effect.TaintSecret) && d.Origin != "getpass.getpass":
		return "\x00a secret", true
	}

	if d.Has(effect.TaintFile) {
		for _, o := range d.Origins() {
			p := place.Resolve(o, f.a.cwd)

			c := place.Classify(p)
			if c.Has(place.Secret|place.Private|place.AuthFile) || c.Has(place.Log) && c.Has(place.Private) {
				return "\x00the content of " + quote(p), true
			}

			if c.Has(place.Tree) {
				return "\x00everything in " + quote(p), true
			}
		}
	}

	if d.Has(effect.TaintEnv) {
		count := 0

		for _, o := range d.Origins() {
			if !secretName(o) {
				continue
			}

			count++

			// One key in a named field is how an API is called. Cloud secrets sign
			// requests and are never sent.
			if d.IsUnknown() || suspect(e) || !namesParameter(d.Text) || count > 1 || strings.HasPrefix(o, "AWS_SECRET") {
				return "\x00the variable " + quote(o), true
			}
		}
	}

	return "", false
}

// sendsAccounts looks at what goes to the sandbox itself: accounts and key
// stores have no business there either.
func sendsAccounts(f *facts, e *fact) (string, bool) {
	for _, o := range e.Data.Origins() {
		p := place.Resolve(o, f.a.cwd)
		if e.Data.Has(effect.TaintFile) && place.Classify(p).Has(place.Secret|place.AuthFile) {
			return "\x00the content of " + quote(p), true
		}
	}

	return "", false
}

// namesParameter says whether the known part of a body names what the unknown
// part is, as requests to an API do ("client_secret=…", "\"token\": …").
func namesParameter(text string) bool {
	before, _, _ := strings.Cut(text, effect.HoleText)

	return strings.ContainsAny(before, "=:")
}

var secretWords = []string{
	"SECRET", "TOKEN", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL", "AUTH_KEY", "_PAT", "SESSION_KEY", "ENCRYPTION_KEY", "CONNECTION_STRING", "DATABASE_URL",
}

// secretName says whether a variable is named as secrets are.
func secretName(name string) bool {
	upper := strings.ToUpper(name)

	for _, w := range secretWords {
		if strings.Contains(upper, w) {
			return true
		}
	}

	return strings.HasPrefix(upper, "AWS_") && strings.Contains(upper, "KEY")
}

func sendsToDrop(f *facts, e *fact) (string, bool) {
	c := e.host
	if !c.Has(place.Drop | place.Onion) {
		return "", false
	}

	if e.Data.Has(effect.TaintFile | effect.TaintEnv | effect.TaintInfo | effect.TaintOutput | effect.TaintInput) {
		what := e.Data.Origin
		if what == "" {
			what = e.Data.Taint.String()
		}

		return show(what), true
	}

	return "", false
}

func tunnelsDNS(f *facts, e *fact) (string, bool) {
	if e.Kind == effect.Connect {
		if !oneOf(e.Via, "dig", "nslookup", "host", "drill", "ping", "getent") || !e.Target.IsConst() {
			return "", false
		}

		// A long label of encoded text is data, not a name.
		for label := range strings.SplitSeq(e.Target.Text, ".") {
			if len(label) >= 24 && encoded(label) {
				return show(label), true
			}
		}

		return "", false
	}

	if e.Port.Text == "53" {
		return looksUpData(e)
	}

	if !strings.HasPrefix(e.Target.Text, "dns:") {
		return "", false
	}

	t := e.Data.Taint & (effect.TaintFile | effect.TaintEnv | effect.TaintEnvAll | effect.TaintSecret | effect.TaintInfo | effect.TaintOutput | effect.TaintDecoded)

	return t.String(), t != 0 && !e.Data.IsUnknown()
}

// looksUpData is a name that code looks up and that was made of data, below a
// domain that is not the own network's.
func looksUpData(e *fact) (string, bool) {
	t := e.Data.Taint & (effect.TaintFile | effect.TaintEnvAll | effect.TaintSecret | effect.TaintInfo | effect.TaintOutput | effect.TaintDecoded | effect.TaintEncoded)
	if t == 0 || e.Data.IsUnknown() || e.Data.IsConst() {
		return "", false
	}

	after := e.Data.Text[strings.LastIndex(e.Data.Text, effect.HoleText)+len(effect.HoleText):]
	_, top := path.Split(strings.ReplaceAll(after, ".", "/"))

	return t.String(), strings.Count(after, ".") >= 2 && !oneOf(top, "local", "internal", "lan", "localdomain", "home", "svc", "arpa", "cluster")
}

// encoded says whether a word looks like base64 or hex rather than language.
func encoded(s string) bool {
	digits, upper, lower := 0, 0, 0

	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= 'a' && c <= 'z':
			lower++
		case c == '=' || c == '+' || c == '/' || c == '_':
		default:
			return false
		}
	}

	return upper > 2 && lower > 2 || digits > 5 && upper+lower > 5
}

// sendsArchive is a packed or whole file that leaves inside another format.
func sendsArchive(f *facts, e *fact) (string, bool) {
	if !outside(e) || !e.Data.Has(effect.TaintFile) || !e.Data.Has(effect.TaintEncoded) {
		return "", false
	}

	for _, o := range e.Data.Origins() {
		switch {
		case strings.Contains(o, "://"):
		case strings.HasSuffix(o, ".tar.gz"), strings.HasSuffix(o, ".tgz"), strings.HasSuffix(o, ".zip"), strings.HasSuffix(o, ".7z"), strings.HasSuffix(o, ".tar"),
			strings.HasSuffix(o, ".gpg"), strings.HasSuffix(o, ".enc"), strings.HasSuffix(o, "/*"), strings.HasSuffix(o, "*.*"), strings.HasSuffix(o, ".db"), strings.HasSuffix(o, ".sqlite"):
			return show(o), true
		}
	}

	return "", false
}
