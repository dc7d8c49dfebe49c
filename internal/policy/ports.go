package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Ports is the list of sandbox ports open besides envd's, the interpreter's and
// MCP's; empty closes all.
type Ports struct{ Ranges []PortRange }

// PortRange is an inclusive range; a single port has First == Last.
type PortRange struct{ First, Last uint16 }

// jupyterPort is where the code interpreter's template runs a Jupyter server
// without a token: a root shell for whoever reaches it. A range does not open it.
const jupyterPort = 8888

// ownPorts have planes of their own, which the option ports does not rule.
var ownPorts = map[uint16]string{49983: "envd", 49999: "the code interpreter", 50005: "the MCP gateway"}

// ParsePorts reads the words after the option: ports and ranges "3000-3010".
func ParsePorts(words []string) (Ports, error) {
	var p Ports
	for _, w := range words {
		firstText, lastText, isRange := strings.Cut(w, "-")
		if !isRange {
			lastText = firstText
		}
		first, err1 := parsePort(firstText)
		last, err2 := parsePort(lastText)
		if err1 != nil || err2 != nil || isRange && first >= last {
			return Ports{}, fmt.Errorf("%q is no port: write a port from 1 to 65535 or a range such as 3000-3010", w)
		}
		if owner := ownPorts[first]; owner != "" && first == last {
			return Ports{}, fmt.Errorf("port %d is %s, which the option ports does not rule: leave it out", first, owner)
		}
		r := PortRange{first, last}
		if slices.Contains(p.Ranges, r) {
			return Ports{}, fmt.Errorf("port %s is listed twice", w)
		}
		p.Ranges = append(p.Ranges, r)
	}
	return p, nil
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' || text[0] == '+' {
		return 0, fmt.Errorf("invalid port %q", text)
	}
	return uint16(n), nil
}

// Check returns an error that says what to do if the port is closed.
func (p Ports) Check(port uint16) error {
	for _, r := range p.Ranges {
		if r.First <= port && port <= r.Last && (port != jupyterPort || r.First == r.Last) {
			return nil
		}
	}
	if port == jupyterPort {
		return fmt.Errorf("port %d is closed: Jupyter listens there without a token and gives a root shell past every check; run code with the code interpreter instead (an operator who wants it open must list %d by itself in the option ports)", port, port)
	}
	return fmt.Errorf("port %d of the sandbox is closed; use a port that is open here%s, or ask the operator to add %d to the option ports", port, p.list(), port)
}

// list names the open ports, for error texts.
func (p Ports) list() string {
	if len(p.Ranges) == 0 {
		return " (none is)"
	}
	parts := make([]string, len(p.Ranges))
	for i, r := range p.Ranges {
		parts[i] = strconv.Itoa(int(r.First))
		if r.First != r.Last {
			parts[i] += "-" + strconv.Itoa(int(r.Last))
		}
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
