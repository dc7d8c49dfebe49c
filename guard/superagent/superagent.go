// Package superagent asks the Superagent Guard API about subjects.
//
// The protocol is that of https://docs.superagent.sh/rest-api/guard and of the
// clients superagent-ai publishes, of which every generation reads the answer a
// little differently: see parse.
package superagent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// Defaults for an operator who names nothing else.
const (
	DefaultURL = "https://app.superagent.sh/api/guard"
	// DefaultWindow is how many bytes the service's own clients send at most in
	// one call.
	DefaultWindow = 8000
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// Wire says which field carries the text.
type Wire string

// The wires.
const (
	WireText   Wire = "text"   // what the API documents
	WirePrompt Wire = "prompt" // what the first generation of clients sends
)

// Config sets up a Client.
type Config struct {
	// URL is the endpoint, and the only place that is ever dialled; "" means
	// DefaultURL. http or https.
	URL string
	// APIKey is sent as bearer token and as x-superagent-api-key. Required.
	APIKey redact.Secret
	// Wire is the field that carries the text; "" means WireText.
	Wire Wire
	// SystemPrompt steers the classification; "" sends none.
	SystemPrompt string
	// Transport overrides how the endpoint is dialled; nil means one of the
	// client's own (proxy environment honoured, connections reused).
	Transport http.RoundTripper
}

// Client is a guard.Guard that asks the Superagent Guard API. It sets no
// deadline: the context does.
type Client struct {
	url          string
	key          redact.Secret
	wire         Wire
	system       string
	http         *http.Client
	configDigest string
}

// New checks the configuration and reports every problem at once.
func New(cfg Config) (*Client, error) {
	if cfg.URL == "" {
		cfg.URL = DefaultURL
	}
	if cfg.Wire == "" {
		cfg.Wire = WireText
	}
	var problems []error
	if err := checkURL(cfg.URL); err != nil {
		problems = append(problems, err)
	}
	if key := cfg.APIKey.Reveal(); strings.TrimSpace(key) == "" {
		problems = append(problems, errors.New("no api_key: set it, for example to {env.SUPERAGENT_API_KEY}, and check that the variable is set where the gateway runs"))
	} else if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		problems = append(problems, errors.New("api_key holds white space or characters that no header can carry"))
	}
	if cfg.Wire != WireText && cfg.Wire != WirePrompt {
		problems = append(problems, fmt.Errorf("unknown wire %q: it is %q or %q", cfg.Wire, WireText, WirePrompt))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("setting up superagent guard: %w", err)
	}
	if cfg.Transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // The standard library's own.
		own.MaxIdleConnsPerHost = 32
		cfg.Transport = own
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", cfg.URL, cfg.Wire, cfg.SystemPrompt))
	return &Client{
		url:    cfg.URL,
		key:    cfg.APIKey,
		wire:   cfg.Wire,
		system: cfg.SystemPrompt,
		http: &http.Client{
			Transport: cfg.Transport,
			// A redirect would hand the text, and perhaps the key, to a host nobody
			// configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		configDigest: hex.EncodeToString(sum[:]),
	}, nil
}

func checkURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("url cannot be parsed: write it as https://host/path") // The cause would repeat it, password and all.
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return errors.New("url is not an absolute http or https URL: write it as https://host/path")
	case u.User != nil:
		return errors.New("url holds a user or password: the key belongs in api_key")
	case u.Fragment != "":
		return errors.New("url holds a fragment, which is never sent")
	default:
		return nil
	}
}

// Close lets go of idle connections. The client stays usable.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Digest implements guard.Digester.
func (c *Client) Digest() string { return c.configDigest }

// Review implements guard.Guard.
func (c *Client) Review(ctx context.Context, s guard.Subject) (guard.Verdict, error) {
	text := render(s)
	if strings.TrimSpace(text) == "" {
		// The API refuses to judge an empty text. White space alone does nothing.
		return guard.Verdict{Decision: guard.Pass, Reasoning: "There is nothing in it that could run."}, nil
	}
	status, answer, err := c.post(ctx, text)
	if err != nil {
		return guard.Verdict{}, err
	}
	if err := c.checkStatus(status, answer); err != nil {
		return guard.Verdict{}, err
	}
	return parse(answer)
}

// render is the text that is judged: of commands and code exactly what will run;
// what happens to a file or a tool is said first, as in "write /etc/profile".
// A text that looks like a URL is a text: it is never fetched, here or there.
func render(s guard.Subject) string {
	switch s.Kind {
	case guard.KindFile, guard.KindTool:
		action := s.Labels[guard.LabelAction]
		if action == "" {
			action = string(s.Kind)
		}
		return fmt.Sprintf("%s %s\n%s", action, oneLine(s.Target), s.Text)
	default:
		return s.Text
	}
}

// oneLine keeps a path or name from passing for part of the text below it.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s)
}

func (c *Client) post(ctx context.Context, text string) (status int, answer []byte, err error) {
	fields := map[string]string{string(c.wire): text}
	if c.system != "" {
		fields["system_prompt"] = c.system
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		return 0, nil, fmt.Errorf("encoding request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, &body)
	if err != nil {
		return 0, nil, &guard.Error{Fault: guard.Misconfigured, Err: errors.New("building request")}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "e2bguard")
	req.Header.Set("Authorization", "Bearer "+c.key.Reveal())
	req.Header.Set("X-Superagent-Api-Key", c.key.Reveal())
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, unreachable(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, unreachable(fmt.Errorf("reading answer: %w", err))
	case len(answer) > maxAnswer:
		return 0, nil, badAnswer("answer is larger than %d bytes", maxAnswer)
	}
	return res.StatusCode, answer, nil
}

// unreachable tells a deadline that passed from a service that is not there. The
// URL stays out of the error's text: it may hold what is nobody's business.
func unreachable(err error) error {
	fault := guard.FaultOf(err)
	if fault != guard.Timeout && fault != guard.Canceled {
		fault = guard.Unreachable
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	return &guard.Error{Fault: fault, Err: err}
}

// statuses says what each status but 200 means.
var statuses = map[int]struct {
	fault guard.Fault
	what  string
}{
	// A fault that does not fail open, as the text itself may have caused it.
	http.StatusBadRequest:            {guard.NotAnalysable, "the service refused the text; if it refuses every text, check the wire option"},
	http.StatusUnprocessableEntity:   {guard.NotAnalysable, "the service refused the text; if it refuses every text, check the wire option"},
	http.StatusUnauthorized:          {guard.Misconfigured, "the service does not know the key: check api_key"},
	http.StatusPaymentRequired:       {guard.Misconfigured, "the account has no subscription or is out of credit"},
	http.StatusForbidden:             {guard.Misconfigured, "the key may not use this service: check api_key"},
	http.StatusNotFound:              {guard.Misconfigured, "there is no such endpoint or team: check url and api_key"},
	http.StatusMethodNotAllowed:      {guard.Misconfigured, "the endpoint takes no POST: check url"},
	http.StatusRequestTimeout:        {guard.Timeout, "the service gave up waiting"},
	http.StatusRequestEntityTooLarge: {guard.TooLarge, "the service takes no text of this size: lower the window"},
	http.StatusTooManyRequests:       {guard.Overloaded, "the service asks for fewer calls"},
	http.StatusServiceUnavailable:    {guard.Overloaded, "the service is overloaded or down for maintenance"},
	http.StatusGatewayTimeout:        {guard.Timeout, "the service's own backend did not answer in time"},
}

func (c *Client) checkStatus(status int, answer []byte) error {
	if status == http.StatusOK {
		return nil
	}
	meaning, known := statuses[status]
	switch {
	case known:
	case status >= 300 && status < 400:
		meaning.fault, meaning.what = guard.Misconfigured, "the endpoint redirects, which is never followed: set url to where it leads, if you trust it"
	case status >= 500:
		meaning.fault, meaning.what = guard.Unreachable, "the service failed"
	default:
		meaning.fault, meaning.what = guard.BadAnswer, "unexpected status"
	}
	err := fmt.Errorf("status %d: %s", status, meaning.what)
	if said := complaint(answer); said != "" && !strings.Contains(said, c.key.Reveal()) {
		err = fmt.Errorf("%w (it said: %q)", err, said)
	}
	return &guard.Error{Fault: meaning.fault, Err: err}
}

// complaint is the service's own short word on an error. Nothing longer is
// repeated: it could quote the text.
func complaint(answer []byte) string {
	var body struct {
		Error any `json:"error"`
	}
	if json.Unmarshal(answer, &body) != nil {
		return ""
	}
	said, _ := body.Error.(string)
	if len(said) > 80 {
		return ""
	}
	return said
}

func badAnswer(format string, args ...any) error {
	return &guard.Error{Fault: guard.BadAnswer, Err: fmt.Errorf(format, args...)}
}
