package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// networkFields are the fields of network in create. Others are refused: what
// they open is not known.
var networkFields = []field{
	{"allowOut", texts},
	{"denyOut", texts},
	{"allowPublicTraffic", boolean},
	{"httpsPorts", integers},
	{"egressProxy", object},
	{"rules", object},
	{"maskRequestHost", text},
}

// networkUpdateFields are the fields of PUT …/network, which replaces the whole
// outbound configuration; E2B clears what is left out.
var networkUpdateFields = []field{
	{"allowOut", texts},
	{"denyOut", texts},
	{"allow_internet_access", boolean},
	{"egressProxy", object},
	{"rules", object},
}

var closedNetworkFields = []struct{ name, why string }{
	{"egressProxy", "it sends the sandbox's traffic through a proxy of the client's"},
	{"rules", "it puts headers into the sandbox's requests"},
	{"maskRequestHost", "it hides from the sandbox's servers which host was asked for"},
}

// settleNetwork writes the outbound policy into create, where it holds from the
// sandbox's first moment, and closes its ports to whoever has no traffic token.
func (m *message) settleNetwork(n policy.Network) ([]policy.Change, *refusal.Refusal) {
	network := strictjson.NewObject()
	if value, _ := m.object.Get("network"); value != nil {
		network = value.(*strictjson.Object)
	}
	if ref := checkNetwork(network, networkFields, "network."); ref != nil {
		return nil, ref
	}
	changes, ref := grant(m.object, network, n)
	if ref != nil {
		return nil, ref
	}
	if public, set := getBool(network, "allowPublicTraffic"); !set || public {
		network.Set("allowPublicTraffic", false)
		change := policy.Change{Field: "allowPublicTraffic", To: "false"}
		if set {
			change.From = "true"
		}
		changes = append(changes, change)
	}
	m.object.Set("network", network)
	return changes, nil
}

func (m *message) enforceNetworkUpdate(p policy.Policy) ([]policy.Change, *refusal.Refusal) {
	if ref := checkNetwork(m.object, networkUpdateFields, ""); ref != nil {
		return nil, ref
	}
	return grant(m.object, m.object, p.Network)
}

// checkNetwork refuses unknown fields and those that this release keeps closed.
func checkNetwork(o *strictjson.Object, fields []field, path string) *refusal.Refusal {
	for _, key := range o.Keys() {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == key }) {
			return denied("the field " + strconv.Quote(path+shorten(key)) + " is not one that e2bguard knows, so it cannot tell what it opens; leave it out")
		}
	}
	for _, f := range closedNetworkFields {
		if value, _ := o.Get(f.name); !isEmpty(value) {
			return denied("the field " + path + f.name + " is closed: " + f.why + "; leave it out")
		}
	}
	return nil
}

// grant intersects what the client asked for with policy and writes the result:
// access in the outer object, lists in the inner one (PUT has one for both).
// E2B lets allowed entries win over denied ones and opens what neither names, so
// a grant always denies everything else, in both of E2B's ways.
func grant(outer, inner *strictjson.Object, n policy.Network) ([]policy.Change, *refusal.Refusal) {
	ask := policy.NetworkAsk{AllowOut: getTexts(inner, "allowOut"), DenyOut: getTexts(inner, "denyOut")}
	if access, set := getBool(outer, "allow_internet_access"); set {
		ask.InternetAccess = &access
	}
	got, err := n.Grant(ask)
	if err != nil {
		return nil, denied(err.Error())
	}
	if n.Internet {
		return nil, nil
	}
	setTexts(inner, "allowOut", got.AllowOut)
	setTexts(inner, "denyOut", got.DenyOut)
	outer.Set("allow_internet_access", got.InternetAccess)
	from, to := describeAsk(ask), describe(got.AllowOut)
	if from == to {
		return nil, nil
	}
	return []policy.Change{{Field: "network", From: from, To: to}}, nil
}

// describeAsk says in the words of the option network what E2B would have made
// of the client's fields; "" if there were none.
func describeAsk(ask policy.NetworkAsk) string {
	deniesAll := slices.Contains(ask.DenyOut, "0.0.0.0/0") || ask.InternetAccess != nil && !*ask.InternetAccess
	switch {
	case ask.InternetAccess == nil && len(ask.AllowOut) == 0 && len(ask.DenyOut) == 0:
		return ""
	case deniesAll:
		return describe(ask.AllowOut)
	default:
		return "open"
	}
}

func describe(allowOut []string) string {
	switch {
	case len(allowOut) == 0:
		return "blocked"
	case len(allowOut) > 8:
		return "allow " + strings.Join(allowOut[:8], " ") + fmt.Sprintf(" and %d more", len(allowOut)-8)
	default:
		return "allow " + strings.Join(allowOut, " ")
	}
}
