package gateway

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/emulator"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// byHost is a transport that notes the host of every request, and sends each to
// an emulated E2B.
type byHost struct {
	*http.Transport
	e2b *url.URL
	mu  sync.Mutex
	to  []string
}

func (b *byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.to = append(b.to, r.Method+" "+r.URL.Scheme+"://"+r.URL.Host)
	b.mu.Unlock()
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = b.e2b.Scheme, b.e2b.Host, ""
	return b.Transport.RoundTrip(out)
}

func (b *byHost) hosts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	to := b.to
	b.to = nil
	return to
}

// newClusterHouse is a gateway for an account whose sandboxes have a domain.
func newClusterHouse(t *testing.T, domain string, edits ...func(*Config)) (*vaultHouse, *byHost) {
	t.Helper()
	e, err := emulator.New(emulator.Options{Dir: t.TempDir(), Domain: domain})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	up := httptest.NewServer(e)
	t.Cleanup(up.Close)
	upURL, err := url.Parse(up.URL)
	require.NoError(t, err)
	hosts := &byHost{Transport: &http.Transport{DisableKeepAlives: true}, e2b: upURL}
	api, _ := url.Parse("https://api.e2b.app")
	sandboxes, _ := url.Parse("https://sandbox.e2b.app")
	v := newVaultHouse(t, e, append([]func(*Config){func(cfg *Config) {
		cfg.Upstream.APIURL, cfg.Upstream.SandboxURL, cfg.Upstream.Transport = api, sandboxes, hosts
	}}, edits...)...)
	return v, hosts
}

func listed(domains ...string) func(*Config) {
	return func(cfg *Config) { cfg.Upstream.Domains = domains }
}

// Sandboxes of a cluster of one's own are reached where E2B says they are, if
// that is allowed; the client hears nothing of it.
func TestSandboxesOfAListedDomainAreReachedThere(t *testing.T) {
	for _, domain := range []string{"sandboxes.example.com", "EU.Sandboxes.Example.com."} {
		v, hosts := newClusterHouse(t, domain, listed("sandboxes.example.com"))
		got := v.ask(t, keyA)
		require.Equal(t, 201, got.Status, got.Body)
		require.Contains(t, got.Body, `"domain":null`)
		m := parseMade(t, got.Body)
		hosts.hosts()
		there := "POST https://49983-" + m.ID + "." + canonicalDomain(domain)
		start := func() answer {
			return v.do(t, "POST", "/process.Process/Start", m.start("X-Access-Token", m.Envd), command(t, "true"))
		}
		require.NotContains(t, start().Body, "error")
		require.Equal(t, []string{there}, hosts.hosts())

		*v.state = *NewState() // a restart
		require.NotContains(t, start().Body, "error")
		require.Equal(t, []string{"GET https://api.e2b.app", there}, hosts.hosts())
	}
}

// Nothing of a client's goes to a host that only an answer names.
func TestSandboxesOfAnUnlistedDomainAreRefused(t *testing.T) {
	for domain, list := range map[string][]string{
		"sandboxes.example.com":         nil,
		"evil.example":                  {"sandboxes.example.com"},
		"evilsandboxes.example.com":     {"sandboxes.example.com"},
		"sandboxes.example.com.evil":    {"sandboxes.example.com"},
		"example.com":                   {"sandboxes.example.com"},
		"a/b.sandboxes.example.com":     {"sandboxes.example.com"},
		"a@b.sandboxes.example.com":     {"sandboxes.example.com"},
		"x:1.sandboxes.example.com":     {"sandboxes.example.com"},
		"..sandboxes.example.com":       {"sandboxes.example.com"},
		"169.254.169.254":               {"sandboxes.example.com"},
		"evil#.sandboxes.example.com":   {"sandboxes.example.com"},
		"a\x00.sandboxes.example.com":   {"sandboxes.example.com"},
		"аpi.sandboxes.example.com":     {"sandboxes.example.com"},
		"sandboxes.example.com:443":     {"sandboxes.example.com"},
		"https://sandboxes.example.com": {"sandboxes.example.com"},
	} {
		v, hosts := newClusterHouse(t, domain, listed(list...))
		got := v.ask(t, keyA)
		require.Equal(t, 403, got.Status, "%q: %s", domain, got.Body)
		require.Contains(t, got.Body, "upstream option domains")
		require.Equal(t, []string{"POST https://api.e2b.app", "DELETE https://api.e2b.app", "GET https://api.e2b.app"}, hosts.hosts(), "%q", domain)
		require.Zero(t, v.running(t))
	}
}

// A sandbox_url of one's own serves what it is said to serve.
func TestSandboxURLServesItsOwnDomain(t *testing.T) {
	for name, tt := range map[string]struct {
		domain string
		edit   func(*Config)
	}{
		"its own domain":       {"e2b.app", listed()},
		"every domain, if set": {"sandboxes.example.com", func(cfg *Config) { cfg.Upstream.AnyDomain = true }},
		"none":                 {"", listed("sandboxes.example.com")},
	} {
		t.Run(name, func(t *testing.T) {
			v, hosts := newClusterHouse(t, tt.domain, tt.edit)
			m := v.create(t, keyA, `{"templateID":"base"}`)
			hosts.hosts()
			require.NotContains(t, v.do(t, "POST", "/process.Process/Start", m.start("X-Access-Token", m.Envd), command(t, "true")).Body, "error")
			require.Equal(t, []string{"POST https://sandbox.e2b.app"}, hosts.hosts())
		})
	}
}

// Without a domain of the gateway's own E2B's is dropped, and the log says once
// what goes past the gateway.
func TestWithoutAPublicDomainTheLogSaysOnceWhatGoesPast(t *testing.T) {
	for name, tt := range map[string]struct {
		edit  func(*Config)
		words string
	}{
		"vault":        {func(*Config) {}, "fail there with 401 or 403"},
		"pass-through": {func(cfg *Config) { cfg.Clients, cfg.Upstream.APIKey, cfg.Seal = nil, redact.Secret{}, nil }, "unguarded"},
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := newClusterHouse(t, "sandboxes.example.com", listed("example.com"), tt.edit)
			for range 2 {
				got := v.do(t, "POST", "/v2/sandboxes", headers("X-API-KEY", keyA), strings.NewReader(`{"templateID":"base"}`))
				require.Equal(t, 201, got.Status, got.Body)
				require.Contains(t, got.Body, `"domain":null`)
				require.NotContains(t, got.Body, "example.com")
			}
			said := 0
			for _, e := range v.log.All() {
				if strings.HasPrefix(e.Message, "without public_domain") {
					said++
					require.Contains(t, e.Message, "getHost()")
					require.Contains(t, e.Message, tt.words)
				}
			}
			require.Equal(t, 1, said)
		})
	}
}
