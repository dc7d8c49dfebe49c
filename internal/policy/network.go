package policy

import "errors"

// Network is the operator's word on outbound traffic. The zero Network is
// "blocked": nothing gets out.
type Network struct {
	// Allow lists the hosts, *.hosts and CIDRs that may be reached; empty means
	// blocked.
	Allow []string
}

// Blocked reports whether nothing may get out.
func (n Network) Blocked() bool { return len(n.Allow) == 0 }

// ParseNetwork reads the words after the option: "blocked", or "allow" and at
// least one preset, host, *.host, address or CIDR.
func ParseNetwork(words []string) (Network, error) {
	return Network{}, errors.New("parsing network")
}

// NetworkAsk is what a client asked for. Nil InternetAccess: it did not say.
type NetworkAsk struct {
	InternetAccess    *bool
	AllowOut, DenyOut []string
}

// NetworkGrant is what the sandbox gets: the intersection of policy and ask.
type NetworkGrant struct {
	// InternetAccess is always false: only AllowOut opens.
	InternetAccess    bool
	AllowOut, DenyOut []string
}

// Grant intersects what the client asked for with what the operator allows. An
// entry of AllowOut outside policy is an error that names it.
func (n Network) Grant(ask NetworkAsk) (NetworkGrant, error) {
	return NetworkGrant{}, errors.New("granting network")
}

// Templates is the allow list of template ids and names; empty allows whatever
// the key may use.
type Templates struct{ Allow []string }

// Check returns an error that says what to do if the template is not allowed.
func (t Templates) Check(id string) error { return errors.New("checking template") }

// Ports is the list of sandbox ports open besides envd's, the interpreter's and
// MCP's; empty closes all.
type Ports struct{ Ranges []PortRange }

// PortRange is an inclusive range; a single port has First == Last.
type PortRange struct{ First, Last uint16 }

// ParsePorts reads the words after the option: ports and ranges "3000-3010".
func ParsePorts(words []string) (Ports, error) { return Ports{}, errors.New("parsing ports") }

// Check returns an error that says what to do if the port is closed.
func (p Ports) Check(port uint16) error { return errors.New("checking port") }
