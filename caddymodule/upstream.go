package caddymodule

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/e2bguard/e2bguard/internal/gateway"
)

// E2B's hosted service.
const (
	defaultAPIURL     = "https://api.e2b.app"
	defaultSandboxURL = "https://sandbox.e2b.app"
)

// Upstream is the E2B that calls are forwarded to.
type Upstream struct {
	// APIURL is the control plane. Default: https://api.e2b.app. Placeholders
	// are resolved when the configuration is loaded.
	APIURL string `json:"api_url,omitempty"`
	// SandboxURL is the data plane, reached with E2B's routing headers. Default:
	// https://sandbox.e2b.app.
	SandboxURL string `json:"sandbox_url,omitempty"`
	// APIKey is E2B's key, best written as {env.E2B_API_KEY} or
	// {file./run/secrets/e2b}, which keeps it out of the configuration. It needs
	// at least one client.
	APIKey string `json:"api_key,omitempty"`
	// Domains are those of clusters of the E2B account's own. Sandboxes for which
	// E2B names one of them, or a subdomain, are reached at
	// https://<port>-<id>.<domain>. Those of any other domain are refused, unless
	// sandbox_url is given: then they are looked for there.
	Domains []string `json:"domains,omitempty"`
	// Legacy marks a self-hosted API that is too old to report a sandbox's network
	// and lifetime: what it does not report is believed.
	Legacy bool `json:"legacy,omitempty"`
}

func (h *Handler) upstream(repl *caddy.Replacer) (gateway.Upstream, error) {
	u := h.Upstream
	if u == nil {
		u = new(Upstream)
	}
	apiURL, err1 := absoluteURL(repl, "upstream api_url", u.APIURL, defaultAPIURL)
	sandboxURL, err2 := absoluteURL(repl, "upstream sandbox_url", u.SandboxURL, defaultSandboxURL)
	key, err3 := secret(repl, "upstream api_key", u.APIKey)
	return gateway.Upstream{APIURL: apiURL, SandboxURL: sandboxURL, APIKey: key, Legacy: u.Legacy,
		Domains: u.Domains, AnyDomain: u.SandboxURL != ""}, errors.Join(err1, err2, err3, checkDomains(u.Domains), h.checkVault())
}

func checkDomains(domains []string) error {
	var problems []error
	for _, d := range domains {
		if !gateway.ValidDomain(d) {
			problems = append(problems, fmt.Errorf("upstream domains %s: write bare domains in lower case, without scheme, port, path or wildcard, as in: domains sandboxes.example.com", d))
		}
	}
	return errors.Join(problems...)
}

// checkVault refuses half a vault: a key of E2B's that anybody may use, or
// client keys that stand for nothing.
func (h *Handler) checkVault() error {
	vault := h.Upstream != nil && h.Upstream.APIKey != ""
	switch {
	case vault && len(h.Clients) == 0:
		return errors.New("upstream api_key without a client would let everybody who reaches this gateway use it: " +
			"add a line such as `client team-a {env.TEAM_A_KEY}`, or remove api_key so that clients bring their own E2B key")
	case !vault && len(h.Clients) > 0:
		return errors.New("a client key stands for E2B's own key: add `api_key {env.E2B_API_KEY}` to the upstream block, " +
			"or remove the client lines so that clients bring their own E2B key")
	}
	return nil
}

// absoluteURL resolves placeholders and checks that the result can be an
// upstream.
func absoluteURL(repl *caddy.Replacer, option, given, fallback string) (*url.URL, error) {
	if given == "" {
		given = fallback
	}
	text, err := resolve(repl, option, given)
	if err != nil {
		return nil, err
	}
	if err := checkURL(option, fallback)(text); err != nil {
		return nil, err
	}
	return url.Parse(text)
}

// checkURL returns a check that a value can be an upstream.
func checkURL(option, example string) func(string) error {
	return func(text string) error {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return fmt.Errorf("%s is not a URL; write it as in: %s", option, example) // the parser's error would repeat a password
		case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
			return fmt.Errorf("%s %s: write the whole URL with http:// or https://, as in: %s", option, u.Redacted(), example)
		case u.User != nil, u.RawQuery != "", u.ForceQuery, u.Fragment != "":
			return fmt.Errorf("%s %s: leave out user, query and fragment; a key goes into api_key", option, u.Redacted())
		}
		return nil
	}
}

// plainRemote says that a URL would send keys readable to another host.
func plainRemote(u *url.URL) bool {
	if u.Scheme != "http" || strings.EqualFold(u.Hostname(), "localhost") {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}
