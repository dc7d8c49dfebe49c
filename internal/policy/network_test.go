package policy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseNetwork(t *testing.T) {
	tests := map[string]Network{
		"blocked":        {},
		"allow internet": {Internet: true},
		"allow api.example.com *.Example.ORG 203.0.113.7 198.51.100.0/24 bücher.example": {
			Allow: []string{"api.example.com", "*.example.org", "203.0.113.7", "198.51.100.0/24", "xn--bcher-kva.example"},
		},
		"allow 203.0.113.9/24 203.0.113.0/24": {Allow: []string{"203.0.113.0/24"}},
		"allow example.com.":                  {Allow: []string{"example.com"}},
		"allow *.s3.amazonaws.com":            {Allow: []string{"*.s3.amazonaws.com"}},
	}
	for words, want := range tests {
		got, err := ParseNetwork(strings.Fields(words))
		require.NoError(t, err, words)
		assert.Equal(t, want, got, words)
		assert.Equal(t, words == "blocked", got.Blocked(), words)
	}

	got, err := ParseNetwork([]string{"allow", "packages", "api.example.com", "pypi.org"})
	require.NoError(t, err)
	assert.Subset(t, got.Allow, []string{"pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "github.com", "codeload.github.com", "crates.io", "proxy.golang.org", "api.example.com"})
	assert.Len(t, got.Allow, len(presets["packages"])+1, "an entry of a preset is listed once")
}

func TestPresetsHoldOnlyWhatAnOperatorCouldWrite(t *testing.T) {
	for name, entries := range presets {
		for _, e := range entries {
			d, err := parseDestination(e)
			require.NoError(t, err, name)
			assert.Equal(t, e, d.String(), "presets are written in canonical form")
		}
	}
}

// Private ranges and metadata addresses are refused when the configuration is
// read (anthropic-experimental/sandbox-runtime#65).
func TestAnAllowListHoldsPublicPlacesOnly(t *testing.T) {
	tests := map[string]string{
		"":                               "network takes",
		"allow":                          "network takes",
		"open":                           "network takes",
		"blocked packages":               "network takes",
		"allow internet example.com":     "write it alone",
		"allow 10.0.0.0/8":               "a private range",
		"allow 10.1.2.3":                 "a private range",
		"allow 172.20.0.0/16":            "a private range",
		"allow 192.168.1.1":              "a private range",
		"allow 127.0.0.1":                "loopback",
		"allow 169.254.169.254":          "metadata",
		"allow 168.63.129.16":            "metadata",
		"allow 100.100.100.200":          "CGNAT",
		"allow 0.0.0.0":                  "this network",
		"allow 224.0.0.1":                "multicast",
		"allow 255.255.255.255":          "reserved",
		"allow 169.0.0.0/8":              "metadata",
		"allow 0.0.0.0/0":                `writes "internet"`,
		"allow 1.0.0.0/1":                "wider than a /8",
		"allow 128.0.0.0/1":              "wider than a /8",
		"allow 64.0.0.0/2":               "wider than a /8",
		"allow 1.2.3.4/7":                "wider than a /8",
		"allow 1.2.3.4/33":               "is no CIDR",
		"allow 1.2.3.4/-1":               "is no CIDR",
		"allow example.com/24":           "is no CIDR",
		"allow ::1":                      "IPv4 only",
		"allow ::/0":                     "IPv4 only",
		"allow 2001:db8::1":              "IPv4 only",
		"allow [::1]":                    "IPv4 only",
		"allow ::ffff:127.0.0.1":         "IPv4 only",
		"allow fd00:ec2::254":            "IPv4 only",
		"allow localhost":                "private network",
		"allow LOCALHOST":                "private network",
		"allow localhost.":               "private network",
		"allow foo.localhost":            "private network",
		"allow metadata.google.internal": "private network",
		"allow *.internal":               "private network",
		"allow printer.local":            "private network",
		"allow db":                       "no dot",
		"allow 0x7f000001":               "is a number",
		"allow 2130706433":               "is a number",
		"allow 0177.0.0.1":               "is a number",
		"allow 127.1":                    "is a number",
		"allow 127.0.0.1.":               "is a number",
		"allow 0x7f.0.0.0x1":             "is a number",
		"allow 127.0.0.0x":               "is a number",
		"allow １２７.0.0.1":                "is a number",
		"allow 127。0。0。1":                "is a number",
		"allow *":                        "whole internet",
		"allow *.":                       "is no host name",
		"allow *.*.com":                  "is no host name",
		"allow a.*.com":                  "is no host name",
		"allow *example.com":             "is no host name",
		"allow *.com":                    "anybody registers",
		"allow *.db":                     "anybody registers",
		"allow *.co.uk":                  "anybody registers",
		"allow https://example.com":      "is a URL",
		"allow example.com:443":          "has a port",
		"allow example.com/path":         "is no CIDR",
		"allow a..com":                   "is no host name",
		"allow -a.com":                   "is no host name",
		"allow a_b.com":                  "is no host name",
		"allow a,b.com":                  "is no host name",
		"allow user@example.com":         "is no host name",
		"allow " + strings.Repeat("a", 64) + ".com": "is no host name",
		"allow xn--a.com": "is no host name",
	}
	for words, want := range tests {
		_, err := ParseNetwork(strings.Fields(words))
		require.Error(t, err, words)
		assert.Contains(t, err.Error(), want, words)
	}
}

// Allowed entries win over denied ones, so a client's own list must never add to
// the operator's (the description of SandboxNetworkConfig in E2B's API file).
func TestGrantIsTheIntersection(t *testing.T) {
	yes, no := true, false
	all := []string{"0.0.0.0/0"}
	list := Network{Allow: []string{"pypi.org", "*.example.com", "203.0.113.0/24", "198.51.100.0/25", "198.51.100.128/25"}}
	ranges := Network{Allow: []string{"203.0.113.0/24", "192.0.2.0/24"}}
	closed := NetworkGrant{DenyOut: all}
	whole := NetworkGrant{AllowOut: list.Allow, DenyOut: all}
	tests := map[string]struct {
		policy Network
		ask    NetworkAsk
		want   NetworkGrant
		err    string
	}{
		"blocked, nothing asked":          {Network{}, NetworkAsk{}, closed, ""},
		"blocked, as old SDKs ask":        {Network{}, NetworkAsk{InternetAccess: &yes}, closed, ""},
		"blocked, client wants it too":    {Network{}, NetworkAsk{InternetAccess: &no, DenyOut: all}, closed, ""},
		"blocked, empty lists":            {Network{}, NetworkAsk{AllowOut: []string{}, DenyOut: []string{}}, closed, ""},
		"blocked, a host":                 {Network{}, NetworkAsk{AllowOut: []string{"evil.test"}}, closed, `allowOut: "evil.test" is outside what this gateway allows (nothing: its network is blocked)`},
		"blocked, everything in one word": {Network{}, NetworkAsk{InternetAccess: &no, AllowOut: all}, closed, "wider than"},
		"blocked, everything in a star":   {Network{}, NetworkAsk{AllowOut: []string{"*"}}, closed, "whole internet"},
		"blocked, everything in halves":   {Network{}, NetworkAsk{AllowOut: []string{"1.0.0.0/1", "128.0.0.0/1"}}, closed, "wider than"},
		"blocked, metadata":               {Network{}, NetworkAsk{AllowOut: []string{"169.254.169.254"}}, closed, "metadata"},

		"list, nothing asked":                  {list, NetworkAsk{}, whole, ""},
		"list, as old SDKs ask":                {list, NetworkAsk{InternetAccess: &yes}, whole, ""},
		"list, client wants none":              {list, NetworkAsk{InternetAccess: &no}, closed, ""},
		"list, client denies all":              {list, NetworkAsk{DenyOut: all}, closed, ""},
		"list, client denies all in halves":    {list, NetworkAsk{DenyOut: []string{"0.0.0.0/1", "128.0.0.0/1"}}, closed, ""},
		"list, client denies private ranges":   {list, NetworkAsk{DenyOut: []string{"10.0.0.0/8", "169.254.169.254", "::/0"}}, whole, ""},
		"list, a host":                         {list, NetworkAsk{AllowOut: []string{"pypi.org"}, DenyOut: all}, NetworkGrant{AllowOut: []string{"pypi.org"}, DenyOut: all}, ""},
		"list, a host in capitals":             {list, NetworkAsk{AllowOut: []string{"PyPI.org."}}, NetworkGrant{AllowOut: []string{"pypi.org"}, DenyOut: all}, ""},
		"list, a host, access off":             {list, NetworkAsk{InternetAccess: &no, AllowOut: []string{"pypi.org"}}, NetworkGrant{AllowOut: []string{"pypi.org"}, DenyOut: all}, ""},
		"list, below a wildcard":               {list, NetworkAsk{AllowOut: []string{"api.example.com", "a.b.example.com", "*.b.example.com", "*.example.com"}}, NetworkGrant{AllowOut: []string{"api.example.com", "a.b.example.com", "*.b.example.com", "*.example.com"}, DenyOut: all}, ""},
		"list, the wildcard's own name":        {list, NetworkAsk{AllowOut: []string{"example.com"}}, closed, `"example.com" is outside`},
		"list, a name that only ends alike":    {list, NetworkAsk{AllowOut: []string{"evilexample.com"}}, closed, `"evilexample.com" is outside`},
		"list, below an exact name":            {list, NetworkAsk{AllowOut: []string{"x.pypi.org"}}, closed, `"x.pypi.org" is outside`},
		"list, wildcard of an exact name":      {list, NetworkAsk{AllowOut: []string{"*.pypi.org"}}, closed, `"*.pypi.org" is outside`},
		"list, an address":                     {list, NetworkAsk{AllowOut: []string{"203.0.113.7", "203.0.113.64/26"}}, NetworkGrant{AllowOut: []string{"203.0.113.7", "203.0.113.64/26"}, DenyOut: all}, ""},
		"list, a range over two entries":       {list, NetworkAsk{AllowOut: []string{"198.51.100.0/24"}}, NetworkGrant{AllowOut: []string{"198.51.100.0/24"}, DenyOut: all}, ""},
		"list, a range half outside":           {list, NetworkAsk{AllowOut: []string{"203.0.112.0/23"}}, closed, `"203.0.112.0/23" is outside`},
		"list, one entry outside":              {list, NetworkAsk{AllowOut: []string{"pypi.org", "*.evil.test"}}, closed, `"*.evil.test" is outside`},
		"list, a name under an address policy": {ranges, NetworkAsk{AllowOut: []string{"pypi.org"}}, closed, `"pypi.org" is outside`},
		"ranges, less what the client denies":  {ranges, NetworkAsk{DenyOut: []string{"203.0.113.128/25", "192.0.2.1"}}, NetworkGrant{AllowOut: []string{"203.0.113.0/25", "192.0.2.0", "192.0.2.2/31", "192.0.2.4/30", "192.0.2.8/29", "192.0.2.16/28", "192.0.2.32/27", "192.0.2.64/26", "192.0.2.128/25"}, DenyOut: all}, ""},
		"list, a denial that would not hold":   {list, NetworkAsk{DenyOut: []string{"203.0.113.1"}}, closed, "would not hold"},
		"list, a denied name":                  {list, NetworkAsk{DenyOut: []string{"evil.test"}}, closed, "is no address or CIDR"},

		"list, more than can be compared": {list, NetworkAsk{DenyOut: make([]string, maxEntries+1)}, closed, "more than 256 entries"},

		"internet, nothing asked":  {Network{Internet: true}, NetworkAsk{}, NetworkGrant{InternetAccess: true}, ""},
		"internet, client narrows": {Network{Internet: true}, NetworkAsk{InternetAccess: &no, AllowOut: []string{"pypi.org"}, DenyOut: all}, NetworkGrant{AllowOut: []string{"pypi.org"}, DenyOut: all}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tt.policy.Grant(tt.ask)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				assert.Empty(t, got.AllowOut)
				assert.False(t, got.InternetAccess)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestGrantRefusesAPolicyThatWasNeverParsed(t *testing.T) {
	_, err := Network{Allow: []string{"10.0.0.0/8"}}.Grant(NetworkAsk{})
	require.ErrorContains(t, err, "reading the network policy")
}

// FuzzGrant checks that no ask reaches an address outside policy, judged as E2B
// judges: allowed entries first, then denied ones.
func FuzzGrant(f *testing.F) {
	for _, s := range []string{"203.0.113.7", "203.0.113.0/25 203.0.113.128/25", "0.0.0.0/0", "1.0.0.0/1", "*", "pypi.org", "*.example.com x.example.com", "::1", "203.0.113.0/24|203.0.113.1"} {
		f.Add(s, uint32(0xCB007107))
	}
	list := Network{Allow: []string{"pypi.org", "*.example.com", "203.0.113.0/24"}}
	policyRange := netip.MustParsePrefix("203.0.113.0/24")
	f.Fuzz(func(t *testing.T, entries string, probe uint32) {
		allow, deny, _ := strings.Cut(entries, "|")
		addr := netip.AddrFrom4([4]byte{byte(probe >> 24), byte(probe >> 16), byte(probe >> 8), byte(probe)})
		grant, err := list.Grant(NetworkAsk{AllowOut: strings.Fields(allow), DenyOut: strings.Fields(deny)})
		if err != nil {
			return
		}
		require.Equal(t, []string{"0.0.0.0/0"}, grant.DenyOut)
		for _, e := range grant.AllowOut {
			d, err := parseDestination(e)
			require.NoError(t, err)
			if d.host == "" {
				require.True(t, !d.prefix.Contains(addr) || policyRange.Contains(addr), "%s reaches %s", e, addr)
				continue
			}
			require.True(t, d.host == "pypi.org" && !d.wildcard || strings.HasSuffix(d.host, ".example.com") || d.host == "example.com" && d.wildcard, e)
		}
	})
}
