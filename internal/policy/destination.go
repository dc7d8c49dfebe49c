package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// destination is one entry of an allow list in its canonical form: an IPv4
// prefix, or a host name that with wildcard stands for the names below it.
type destination struct {
	prefix   netip.Prefix
	host     string
	wildcard bool
}

// String returns the entry as E2B takes it.
func (d destination) String() string {
	switch {
	case d.host == "" && d.prefix.IsSingleIP():
		return d.prefix.Addr().String()
	case d.host == "":
		return d.prefix.String()
	case d.wildcard:
		return "*." + d.host
	default:
		return d.host
	}
}

// special are the IPv4 ranges that are not the public internet. E2B denies
// sandboxes most of them whatever is allowed; the others reach machines of the
// host or of its cloud.
var special = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), `"this network"`},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private range"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier's shared range (CGNAT)"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "Azure's metadata address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where clouds serve their metadata"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private range"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a range for protocol assignments"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private range"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmarking range"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved range"},
}

// widest is the shortest prefix an entry may have: a few wide entries must not
// add up to "everything" by accident.
const widest = 8

// privateZones are the top-level names that resolve inside somebody's network.
var privateZones = map[string]bool{
	"localhost": true, "local": true, "localdomain": true, "internal": true, "intranet": true,
	"private": true, "corp": true, "home": true, "lan": true, "arpa": true,
}

// parseDestination reads a host name, "*.name", IPv4 address or IPv4 CIDR that
// is public. Its errors say what to write instead.
func parseDestination(text string) (destination, error) {
	switch {
	case strings.Contains(text, "://"):
		return destination{}, fmt.Errorf("%q is a URL; write its host only", text)
	case text == "*":
		return destination{}, fmt.Errorf(`"*" means the whole internet; list the hosts that are needed`)
	case strings.Contains(text, "/"):
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return destination{}, fmt.Errorf("%q is no CIDR; write one such as 203.0.113.0/24, or a host name without a path", text)
		}
		return publicPrefix(prefix, text)
	}
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return publicPrefix(netip.PrefixFrom(addr, addr.BitLen()), text)
	}
	return parseHost(text)
}

func publicPrefix(prefix netip.Prefix, text string) (destination, error) {
	if !prefix.Addr().Is4() {
		return destination{}, fmt.Errorf("%q is not IPv4, and E2B filters IPv4 only; write the IPv4 address or the host name", text)
	}
	prefix = prefix.Masked()
	if prefix.Bits() < widest {
		return destination{}, fmt.Errorf("%q is wider than a /%d; list the ranges that are needed (an operator who means the whole internet writes \"internet\")", text, widest)
	}
	for _, s := range special {
		if s.prefix.Overlaps(prefix) {
			return destination{}, fmt.Errorf("%q is or holds %s, which no sandbox may reach; write public addresses only", text, s.what)
		}
	}
	return destination{prefix: prefix}, nil
}

// hostNames reads names as a resolver does, and refuses what DNS cannot hold.
var hostNames = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

func parseHost(text string) (destination, error) {
	name, wildcard := strings.CutPrefix(strings.TrimSuffix(text, "."), "*.")
	if strings.Contains(name, ":") {
		return destination{}, fmt.Errorf("%q has a port; write the host only (E2B filters names on ports 80 and 443)", text)
	}
	host, err := hostNames.ToASCII(name)
	if err != nil {
		return destination{}, fmt.Errorf(`%q is no host name; write one such as api.example.com or *.example.com, separated by spaces`, text)
	}
	top := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case numeric(top):
		return destination{}, fmt.Errorf("%q is a number that some programs read as an address; write an address as 203.0.113.7", text)
	case privateZones[top]:
		return destination{}, fmt.Errorf("%q names a machine of a private network, which no sandbox may reach; write public hosts only", text)
	case wildcard && isRegistry(host):
		return destination{}, fmt.Errorf("%q stands for everything that anybody registers there; write *.name.%s", text, host)
	case top == host:
		return destination{}, fmt.Errorf("%q has no dot, so it names no public host; write the full name", text)
	}
	return destination{host: host, wildcard: wildcard}, nil
}

// isRegistry reports whether names directly below host are anybody's to
// register: "com", "co.uk", and any name without a dot.
func isRegistry(host string) bool {
	suffix, icann := publicsuffix.PublicSuffix(host)
	return suffix == host && (icann || !strings.Contains(host, "."))
}

// numeric reports whether a last label makes inet_aton or a URL parser read the
// name as an address: digits, or 0x and hexadecimal digits.
func numeric(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = hex, "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}

// covers reports whether every place that other stands for is one of d's.
func (d destination) covers(other destination) bool {
	if d.host == "" || other.host == "" {
		return d.host == other.host && d.prefix.Bits() <= other.prefix.Bits() && d.prefix.Contains(other.prefix.Addr())
	}
	if d.wildcard {
		return strings.HasSuffix(other.host, "."+d.host) || other.wildcard && other.host == d.host
	}
	return !other.wildcard && other.host == d.host
}

// subtract returns the parts of p that are not in q.
func subtract(p, q netip.Prefix) []netip.Prefix {
	switch {
	case !p.Overlaps(q):
		return []netip.Prefix{p}
	case q.Bits() <= p.Bits():
		return nil
	}
	low := netip.PrefixFrom(p.Addr(), p.Bits()+1)
	bytes := p.Addr().As4()
	bytes[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	high := netip.PrefixFrom(netip.AddrFrom4(bytes), p.Bits()+1)
	return append(subtract(low, q), subtract(high, q)...)
}

// subtractAll returns the parts of every p that are in none of the qs.
func subtractAll(ps, qs []netip.Prefix) []netip.Prefix {
	for _, q := range qs {
		var rest []netip.Prefix
		for _, p := range ps {
			rest = append(rest, subtract(p, q)...)
		}
		ps = rest
	}
	return ps
}
