package static

import (
	"regexp"
	"slices"
	"strings"
)

// sshdHardening are settings of sshd_config(5), in lower case, with the values by
// which fewer people get in, or get less; "#" stands for any number.
var sshdHardening = map[string][]string{
	"permitrootlogin": {"no", "prohibit-password", "without-password", "forced-commands-only"}, "passwordauthentication": {"no"},
	"permitemptypasswords": {"no"}, "challengeresponseauthentication": {"no"}, "kbdinteractiveauthentication": {"no"}, "hostbasedauthentication": {"no"},
	"permituserenvironment": {"no"}, "x11forwarding": {"no"}, "allowtcpforwarding": {"no"}, "allowagentforwarding": {"no"}, "permittunnel": {"no"}, "gatewayports": {"no"},
	"ignorerhosts": {"yes"}, "strictmodes": {"yes"}, "pubkeyauthentication": {"yes"}, "usepam": {"yes"}, "protocol": {"2"}, "loglevel": {"info", "verbose"},
	"maxauthtries": {"#"}, "maxsessions": {"#"}, "logingracetime": {"#"}, "clientaliveinterval": {"#"}, "clientalivecountmax": {"#"},
}

var (
	sshdSetting = regexp.MustCompile(`^#?\s*([A-Za-z0-9]+)(?:\s+|\s*=\s*)([A-Za-z0-9-]+)$`)
	digits      = regexp.MustCompile(`^[0-9]+[smh]?$`)
)

// hardensSSHD says whether all that a write puts into sshd's configuration are
// settings that harden it.
func hardensSSHD(e *fact) bool {
	text := e.Data.Text
	if !e.Data.IsConst() || text == "" {
		return false
	}

	lines := strings.Split(text, "\n")

	if e.Via == "sed -i" {
		var ok bool
		if lines, ok = sedReplacements(text); !ok {
			return false
		}
	}

	found := false

	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") && e.Via != "sed -i" {
			continue
		}

		m := sshdSetting.FindStringSubmatch(line)
		if m == nil {
			return false
		}

		values, value := sshdHardening[strings.ToLower(m[1])], strings.ToLower(m[2])
		if !slices.Contains(values, value) && !(slices.Contains(values, "#") && digits.MatchString(value)) {
			return false
		}

		found = true
	}

	return found
}

// sedReplacements are what the s commands of a script put in; false if it has
// others, whose effect is not told here.
func sedReplacements(script string) (out []string, ok bool) {
	for rest := strings.TrimLeft(script, " ;\n"); rest != ""; rest = strings.TrimLeft(rest, " ;\n") {
		if rest[0] != 's' || len(rest) < 2 {
			return nil, false
		}

		delimiter := rest[1]
		parts := []string{""}
		i := 2

		for ; i < len(rest) && len(parts) < 3; i++ {
			switch {
			case rest[i] == '\\' && i+1 < len(rest):
				parts[len(parts)-1] += rest[i : i+2]
				i++
			case rest[i] == delimiter:
				parts = append(parts, "")
			default:
				parts[len(parts)-1] += rest[i : i+1]
			}
		}

		if len(parts) < 3 {
			return nil, false
		}

		for i < len(rest) && strings.IndexByte("gIi0123456789", rest[i]) >= 0 {
			i++
		}

		if i < len(rest) && strings.IndexByte(" ;\n", rest[i]) < 0 {
			return nil, false
		}

		out, rest = append(out, parts[1]), rest[i:]
	}

	return out, true
}
