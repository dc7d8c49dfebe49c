package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Network is the operator's word on outbound traffic. The zero Network is
// "blocked": nothing gets out.
type Network struct {
	// Allow lists the hosts, *.hosts and CIDRs that may be reached; empty means
	// blocked.
	Allow []string
	// Internet leaves the network to the client, whole and unrestricted.
	Internet bool
}

// everything is how E2B spells "all traffic"; it compares the string.
const everything = "0.0.0.0/0"

// maxEntries bounds what is compared for one request.
const maxEntries = 256

// presets are names for lists of destinations. A host that takes uploads as well
// as downloads (github.com does) is a way out for data: the documentation of the
// option says so.
var presets = map[string][]string{
	// packages is what the usual package managers fetch from.
	"packages": {
		"pypi.org", "files.pythonhosted.org", // pip, uv
		"conda.anaconda.org", "repo.anaconda.com", // conda
		"registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org", // npm, yarn, headers for native modules
		"deb.debian.org", "security.debian.org", // apt on Debian
		"archive.ubuntu.com", "*.archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com", // apt on Ubuntu
		"dl-cdn.alpinelinux.org",                                                                                                                  // apk
		"github.com", "codeload.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com", "release-assets.githubusercontent.com", // git clone, release files
		"crates.io", "index.crates.io", "static.crates.io", // cargo
		"proxy.golang.org", "sum.golang.org", // go
		"rubygems.org", "index.rubygems.org", // gem, bundler
		"repo.maven.apache.org", "repo1.maven.org", // maven, gradle
		"cran.r-project.org", "cloud.r-project.org", "packagemanager.posit.co", // R
	},
}

// Blocked reports whether nothing may get out.
func (n Network) Blocked() bool { return len(n.Allow) == 0 && !n.Internet }

// ParseNetwork reads the words after the option: "blocked"; or "allow" and at
// least one of a preset ("packages"), a host, *.host, IPv4 address or CIDR; or
// "allow internet", which must stand alone.
func ParseNetwork(words []string) (Network, error) {
	switch {
	case len(words) == 1 && words[0] == "blocked":
		return Network{}, nil
	case len(words) < 2 || words[0] != "allow":
		return Network{}, errors.New(`network takes "blocked", or "allow" and what may be reached: packages, hosts, *.hosts, addresses, CIDRs`)
	case len(words) == 2 && words[1] == "internet":
		return Network{Internet: true}, nil
	case slices.Contains(words[1:], "internet"):
		return Network{}, errors.New(`network allow internet opens everything: write it alone, or leave "internet" out`)
	}
	var n Network
	for _, w := range words[1:] {
		entries, ok := presets[w]
		if !ok {
			entries = []string{w}
		}
		for _, e := range entries {
			d, err := parseDestination(e)
			if err != nil {
				return Network{}, fmt.Errorf("network allow: %w", err)
			}
			if s := d.String(); !slices.Contains(n.Allow, s) {
				n.Allow = append(n.Allow, s)
			}
		}
	}
	return n, nil
}

// NetworkAsk is what a client asked for. Nil InternetAccess: it did not say.
type NetworkAsk struct {
	InternetAccess    *bool
	AllowOut, DenyOut []string
}

// NetworkGrant is what the sandbox gets: the intersection of policy and ask.
type NetworkGrant struct {
	// InternetAccess is false unless the policy leaves the network to the client:
	// then only AllowOut opens.
	InternetAccess    bool
	AllowOut, DenyOut []string
}

// Grant intersects what the client asked for with what the operator allows, as
// E2B would understand both: allowed entries win over denied ones, and what
// neither names is open. An entry of AllowOut outside policy is an error that
// names it, and so is a DenyOut that E2B would not keep.
func (n Network) Grant(ask NetworkAsk) (NetworkGrant, error) {
	if n.Internet {
		return NetworkGrant{
			InternetAccess: ask.InternetAccess == nil || *ask.InternetAccess,
			AllowOut:       ask.AllowOut, DenyOut: ask.DenyOut,
		}, nil
	}
	if len(ask.AllowOut)+len(ask.DenyOut) > maxEntries {
		return NetworkGrant{}, fmt.Errorf("allowOut and denyOut have more than %d entries; name fewer, wider ranges", maxEntries)
	}
	allowed := make([]destination, 0, len(n.Allow))
	for _, e := range n.Allow {
		d, err := parseDestination(e)
		if err != nil {
			return NetworkGrant{}, fmt.Errorf("reading the network policy: %w", err)
		}
		allowed = append(allowed, d)
	}
	denied, err := parseDenied(ask.DenyOut)
	if err != nil {
		return NetworkGrant{}, err
	}
	grant := NetworkGrant{DenyOut: []string{everything}}
	switch {
	case len(ask.AllowOut) > 0:
		grant.AllowOut, err = n.grantListed(ask.AllowOut, allowed)
	case ask.InternetAccess != nil && !*ask.InternetAccess:
		// The client wants nothing, so it gets nothing.
	default:
		grant.AllowOut, err = grantAll(allowed, denied)
	}
	return grant, err
}

// grantListed returns the entries the client named, if policy covers each.
func (n Network) grantListed(ask []string, allowed []destination) ([]string, error) {
	var grant []string
	for _, e := range ask {
		d, err := parseDestination(e)
		if err == nil && !covered(d, allowed) {
			err = fmt.Errorf("%q is outside what this gateway allows (%s)", e, n.describe())
		}
		if err != nil {
			return nil, fmt.Errorf("allowOut: %w; leave it out, or ask the operator to add it to the option network", err)
		}
		if s := d.String(); !slices.Contains(grant, s) {
			grant = append(grant, s)
		}
	}
	return grant, nil
}

// covered reports whether d lies within the allowed destinations, which for
// addresses may take several ranges together.
func covered(d destination, allowed []destination) bool {
	if d.host == "" {
		return len(subtractAll([]netip.Prefix{d.prefix}, prefixes(allowed))) == 0
	}
	return slices.ContainsFunc(allowed, func(a destination) bool { return a.covers(d) })
}

// grantAll returns everything allowed, less what the client denied itself.
func grantAll(allowed []destination, denied []netip.Prefix) ([]string, error) {
	if len(subtractAll([]netip.Prefix{netip.MustParsePrefix(everything)}, denied)) == 0 {
		return nil, nil
	}
	var grant []string
	for _, d := range allowed {
		if d.host == "" {
			for _, p := range subtractAll([]netip.Prefix{d.prefix}, denied) {
				grant = append(grant, destination{prefix: p}.String())
			}
			continue
		}
		if len(denied) > 0 {
			return nil, fmt.Errorf("denyOut: E2B lets an allowed name win over a denied address, and this gateway allows %s, so the denial would not hold; name what the sandbox needs in allowOut instead", d)
		}
		grant = append(grant, d.String())
	}
	return grant, nil
}

// parseDenied reads the denied ranges that matter: those that are not denied to
// every sandbox anyway.
func parseDenied(entries []string) ([]netip.Prefix, error) {
	var denied []netip.Prefix
	for _, e := range entries {
		prefix, err := netip.ParsePrefix(e)
		if addr, errAddr := netip.ParseAddr(e); errAddr == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("denyOut: %q is no address or CIDR, and E2B denies nothing else; write one such as 203.0.113.0/24", e)
		}
		if prefix.Addr().Is4() && len(subtractAll([]netip.Prefix{prefix.Masked()}, specialPrefixes())) > 0 {
			denied = append(denied, prefix.Masked())
		}
	}
	return denied, nil
}

func prefixes(ds []destination) []netip.Prefix {
	var ps []netip.Prefix
	for _, d := range ds {
		if d.host == "" {
			ps = append(ps, d.prefix)
		}
	}
	return ps
}

func specialPrefixes() []netip.Prefix {
	ps := make([]netip.Prefix, len(special))
	for i, s := range special {
		ps[i] = s.prefix
	}
	return ps
}

// describe names what is allowed, shortened, for error texts.
func (n Network) describe() string {
	switch {
	case n.Blocked():
		return "nothing: its network is blocked"
	case len(n.Allow) > 8:
		return strings.Join(n.Allow[:8], ", ") + fmt.Sprintf(" and %d more", len(n.Allow)-8)
	default:
		return strings.Join(n.Allow, ", ")
	}
}
