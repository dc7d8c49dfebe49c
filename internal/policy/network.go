package policy

// Network is the operator's word on outbound traffic. The zero Network is
// "blocked": nothing gets out.
type Network struct {
	// Allow lists the hosts, *.hosts and CIDRs that may be reached; empty means
	// blocked.
	Allow []string
}

// Templates is the allow list of template ids and names; empty allows whatever
// the key may use.
type Templates struct{ Allow []string }

// Ports is the list of sandbox ports open besides envd's, the interpreter's and
// MCP's; empty closes all.
type Ports struct{ Ranges []PortRange }

// PortRange is an inclusive range; a single port has First == Last.
type PortRange struct{ First, Last uint16 }
