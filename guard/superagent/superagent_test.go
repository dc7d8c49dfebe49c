package superagent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/superagent"
	"github.com/e2bguard/e2bguard/guard/superagent/superagenttest"
	"github.com/e2bguard/e2bguard/internal/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = redact.NewSecret(superagenttest.Key)

func client(t *testing.T, cfg superagent.Config) *superagent.Client {
	t.Helper()
	if cfg.APIKey.IsZero() {
		cfg.APIKey = key
	}
	c, err := superagent.New(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func code(text string) guard.Subject {
	return guard.Subject{Kind: guard.KindCode, Language: "python", Text: text}
}

// content wraps the message's content, given as JSON, into an answer.
func content(c string) string { return `{"choices":[{"message":{"content":` + c + `}}]}` }

func quoted(s string) string {
	out, _ := json.Marshal(s)
	return string(out)
}

func TestEveryGenerationOfAnswersIsRead(t *testing.T) {
	violations := []guard.Violation{{Type: "a", CWE: "CWE-1"}, {Type: "b"}}
	for name, c := range map[string]struct {
		answer string
		want   guard.Verdict
	}{
		"documented pass":  {superagenttest.Pass, guard.Verdict{Decision: guard.Pass, Reasoning: "It prints a greeting."}},
		"documented block": {superagenttest.Block, guard.Verdict{Decision: guard.Block, Reasoning: "It sends secrets away.", Violations: []guard.Violation{{Type: "data_exfiltration", CWE: "CWE-200"}, {Type: "system_damage"}}}},
		"content as a string": {
			content(quoted(`{"classification":"block","violation_types":["a","b"],"cwe_codes":["CWE-1"]}`)),
			guard.Verdict{Decision: guard.Block, Violations: violations},
		},
		"status instead of classification": {content(`{"status":"block"}`), guard.Verdict{Decision: guard.Block}},
		"status in a string":               {content(quoted(` {"status":"pass"} `)), guard.Verdict{Decision: guard.Pass}},
		"both, and the same":               {content(`{"status":"block","classification":"block"}`), guard.Verdict{Decision: guard.Block}},
		"reasoning in the content":         {content(`{"classification":"block","reasoning":" why "}`), guard.Verdict{Decision: guard.Block, Reasoning: "why"}},
		"reasoning_content": {
			`{"choices":[{"message":{"content":{"classification":"block"},"reasoning_content":"why"}}]}`,
			guard.Verdict{Decision: guard.Block, Reasoning: "why"},
		},
		"the content's own reasoning first": {
			`{"choices":[{"message":{"reasoning":"outer","content":{"reasoning":"inner","classification":"block"}}}]}`,
			guard.Verdict{Decision: guard.Block, Reasoning: "inner"},
		},
		"more weaknesses than types":   {content(`{"classification":"block","cwe_codes":["CWE-1","CWE-2"]}`), guard.Verdict{Decision: guard.Block, Violations: []guard.Violation{{CWE: "CWE-1"}, {CWE: "CWE-2"}}}},
		"lists of the wrong type":      {content(`{"classification":"block","violation_types":"a","cwe_codes":[1,null]}`), guard.Verdict{Decision: guard.Block}},
		"reasoning of the wrong type":  {`{"choices":[{"message":{"content":{"classification":"pass","reasoning":7},"reasoning":null}}]}`, guard.Verdict{Decision: guard.Pass}},
		"fields nobody knows":          {`{"x":{"classification":"block"},"choices":[{"y":1,"message":{"z":[],"content":{"classification":"pass","w":{}}}}]}`, guard.Verdict{Decision: guard.Pass}},
		"two choices that agree":       {`{"choices":[{"message":{"content":{"status":"pass"}}},{"message":{"content":{"classification":"pass"}}}]}`, guard.Verdict{Decision: guard.Pass}},
		"a repeated key that agrees":   {content(`{"status":"block","status":"block"}`), guard.Verdict{Decision: guard.Block}},
		"white space around the JSON":  {"\n " + content(`{"status":"pass"}`) + "\n", guard.Verdict{Decision: guard.Pass}},
		"escaped letters are the same": {content(`{"st\u0061tus":"p\u0061ss"}`), guard.Verdict{Decision: guard.Pass}},
	} {
		t.Run(name, func(t *testing.T) {
			s := superagenttest.New(t, superagenttest.Says(c.answer))
			v, err := client(t, superagent.Config{URL: s.URL}).Review(t.Context(), code("x"))
			require.NoError(t, err)
			assert.Equal(t, c.want, v)
		})
	}
}

func answers() map[string]struct {
	answer http.HandlerFunc
	fault  guard.Fault
	text   string
} {
	type row = struct {
		answer http.HandlerFunc
		fault  guard.Fault
		text   string
	}
	bad := func(body, text string) row { return row{superagenttest.Says(body), guard.BadAnswer, text} }
	status := func(status int, fault guard.Fault, text string) row {
		return row{superagenttest.Status(status, `{"error":"Service's word"}`), fault, text}
	}
	differ := func(body string) row {
		return row{superagenttest.Says(body), guard.Contradictory, "says both pass and block"}
	}
	return map[string]row{
		"400": status(400, guard.NotAnalysable, "refused the text"),
		"401": status(401, guard.Misconfigured, "check api_key"),
		"402": status(402, guard.Misconfigured, "no subscription"),
		"403": status(403, guard.Misconfigured, "may not use this service"),
		"404": status(404, guard.Misconfigured, "no such endpoint or team"),
		"405": status(405, guard.Misconfigured, "takes no POST"),
		"408": status(408, guard.Timeout, "gave up waiting"),
		"413": status(413, guard.TooLarge, "lower the window"),
		"418": status(418, guard.BadAnswer, "unexpected status"),
		"422": status(422, guard.NotAnalysable, "refused the text"),
		"429": status(429, guard.Overloaded, "fewer calls"),
		"500": status(500, guard.Unreachable, `the service failed (it said: "Service's word")`),
		"502": status(502, guard.Unreachable, "status 502"),
		"503": status(503, guard.Overloaded, "maintenance"),
		"504": status(504, guard.Timeout, "did not answer in time"),
		"599": status(599, guard.Unreachable, "status 599"),
		"201": status(201, guard.BadAnswer, "status 201: unexpected status"),
		"204": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, guard.BadAnswer, "unexpected status"},
		"302": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, guard.Misconfigured, "redirects"},
		"307": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, guard.Misconfigured, "redirects"},
		"429 with a pass": {superagenttest.Status(429, superagenttest.Pass), guard.Overloaded, "fewer calls"},
		"500 with a pass": {superagenttest.Status(500, superagenttest.Pass), guard.Unreachable, "failed"},

		"HTML":                       bad("<!DOCTYPE html><title>Log in</title>", "HTML"),
		"HTML behind space":          bad("\n  <html>", "HTML"),
		"empty":                      bad("", "empty"),
		"white space":                bad(" \n", "empty"),
		"truncated":                  bad(superagenttest.Pass[:len(superagenttest.Pass)-3], "no complete JSON"),
		"truncated early":            bad(`{"choices":[{"mess`, "no complete JSON"),
		"text":                       bad("pass", "no complete JSON"),
		"a string":                   bad(`"pass"`, "no object"),
		"null":                       bad(`null`, "no object"),
		"an array":                   bad(`[]`, "no object"),
		"two values":                 bad(superagenttest.Pass+superagenttest.Pass, "more after its end"),
		"trailing data":              bad(superagenttest.Pass+"x", "more after its end"),
		"no choices":                 bad(`{}`, "no choices"),
		"empty choices":              bad(`{"choices":[]}`, "no choices"),
		"choices of the wrong type":  bad(`{"choices":{"message":{}}}`, "no choices"),
		"choices twice":              bad(`{"choices":[{"message":{"content":{"status":"pass"}}}],"choices":[{"message":{"content":{"status":"pass"}}}]}`, "choices twice"),
		"a choice that is none":      bad(`{"choices":["pass"]}`, "no message"),
		"no message":                 bad(`{"choices":[{}]}`, "no message"),
		"message of the wrong type":  bad(`{"choices":[{"message":"pass"}]}`, "a message is no object"),
		"second choice without one":  bad(`{"choices":[{"message":{"content":{"status":"pass"}}},{}]}`, "no message"),
		"no content":                 bad(`{"choices":[{"message":{"classification":"pass"}}]}`, "no content"),
		"null content":               bad(content(`null`), "content is no object"),
		"content in parts":           bad(content(`[{"type":"text","text":"pass"}]`), "content is no object"),
		"empty content":              bad(content(`" "`), "content is empty"),
		"content as a word":          bad(content(`"pass"`), "text, not JSON"),
		"content as a fenced block":  bad(content(quoted("```json\n{\"status\":\"pass\"}\n```")), "text, not JSON"),
		"content with text after":    bad(content(quoted(`{"status":"pass"} but really block`)), "text, not JSON"),
		"content as a quoted string": bad(content(quoted(`"pass"`)), "text, not JSON"),
		"no classification":          bad(content(`{"violation_types":[]}`), "neither classification nor status"),
		"case of the key":            bad(content(`{"Classification":"pass"}`), "in another case"),
		"another case beside":        bad(content(`{"status":"pass","Status":"block"}`), "in another case"),
		"another case of content":    bad(`{"choices":[{"message":{"content":{"status":"pass"},"Content":{"status":"block"}}}]}`, "in another case"),
		"another case of message":    bad(`{"choices":[{"message":{"content":{"status":"pass"}},"MESSAGE":{}}]}`, "in another case"),
		"another case of choices":    bad(`{"choices":[{"message":{"content":{"status":"pass"}}}],"Choices":[]}`, "in another case"),
		"unknown word":               bad(content(`{"classification":"allow"}`), "neither pass nor block"),
		"case of the word":           bad(content(`{"classification":"PASS"}`), "neither pass nor block"),
		"space in the word":          bad(content(`{"classification":"pass "}`), "neither pass nor block"),
		"empty word":                 bad(content(`{"classification":""}`), "neither pass nor block"),
		"a boolean":                  bad(content(`{"classification":true}`), "neither pass nor block"),
		"null beside a word":         bad(content(`{"classification":null,"status":"pass"}`), "neither pass nor block"),
		"a list of words":            bad(content(`{"classification":["pass"]}`), "neither pass nor block"),
		"deep":                       bad(strings.Repeat(`{"a":`, 5000)+"1"+strings.Repeat("}", 5000), "nested deeper"),
		"too large":                  bad(`{"x":"`+strings.Repeat("x", 2<<20)+`"}`, "larger than"),

		"classification and status differ":   differ(content(`{"classification":"pass","status":"block"}`)),
		"in a string":                        differ(content(quoted(`{"classification":"block","status":"pass"}`))),
		"a repeated key differs":             differ(content(`{"classification":"block","classification":"pass"}`)),
		"a repeated key differs, other way":  differ(content(`{"status":"pass","status":"block"}`)),
		"an escaped key differs":             differ(content(`{"status":"pass","st\u0061tus":"block"}`)),
		"two contents differ":                differ(`{"choices":[{"message":{"content":{"status":"block"},"content":{"status":"pass"}}}]}`),
		"two messages differ":                differ(`{"choices":[{"message":{"content":{"status":"block"}},"message":{"content":{"status":"pass"}}}]}`),
		"two choices differ":                 differ(`{"choices":[{"message":{"content":{"status":"pass"}}},{"message":{"content":{"status":"block"}}}]}`),
		"an object and a string that differ": differ(`{"choices":[{"message":{"content":{"status":"pass"}}},{"message":{"content":"{\"status\":\"block\"}"}}]}`),

		"hangs":             {superagenttest.Hangs, guard.Timeout, "deadline exceeded"},
		"drops":             {superagenttest.Drops, guard.Unreachable, "EOF"},
		"drops in the body": {superagenttest.DropsAfter(superagenttest.Pass[:100]), guard.Unreachable, "reading answer"},
	}
}

// langwatch/tasks#430; superagent-ai/superagent guard.ts, whose hook prints
// "allowing" on any error.
func TestEveryFaultIsItsOwnErrorAndNeverAPass(t *testing.T) {
	for name, c := range answers() {
		t.Run(name, func(t *testing.T) {
			s := superagenttest.New(t, c.answer)
			a := client(t, superagent.Config{URL: s.URL})
			timeout := 10 * time.Second
			if c.fault == guard.Timeout && name == "hangs" {
				timeout = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			const text = "the text under review"
			v, err := a.Review(ctx, code(text))
			assert.Equal(t, guard.Verdict{}, v)
			var e *guard.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, c.fault, e.Fault, err)
			assert.ErrorContains(t, err, c.text)
			for _, leak := range []string{superagenttest.Key, text, s.URL} {
				assert.NotContains(t, err.Error(), leak)
			}
			assert.Len(t, s.Requests(), 1, "asked once, and nowhere else")

			// Through the chain and the operator's mode.
			chain, err := guard.NewChain([]guard.Link{{Name: "superagent", Guard: a, Remote: true, Timeout: timeout, MaskSecrets: strings.Clone}}, guard.ChainOptions{})
			require.NoError(t, err)
			v, err = chain.Review(t.Context(), code(text))
			assert.False(t, guard.Decide(v, err, guard.Mode{}).Allow)
			serviceFault := c.fault == guard.Unreachable || c.fault == guard.Timeout || c.fault == guard.Overloaded || c.fault == guard.BadAnswer
			ruling := guard.Decide(v, err, guard.Mode{AllowOnError: true})
			assert.Equal(t, serviceFault, ruling.Allow)
			assert.Equal(t, serviceFault, ruling.FailOpen)
			assert.True(t, guard.Decide(v, err, guard.Mode{Shadow: true}).Allow)
		})
	}
}

func TestServiceThatIsNotThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	tlsServer := httptest.NewTLSServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = nil
	t.Cleanup(tlsServer.Close)
	for name, url := range map[string]string{
		"refused":         "http://" + address + "/api/guard?key=hunter2",
		"no such host":    "http://guard.invalid./api/guard?key=hunter2",
		"unknown issuer":  tlsServer.URL + "/api/guard?key=hunter2",
		"TLS to no TLS":   "https://" + address + "/api/guard?key=hunter2",
		"no TLS, but TLS": strings.Replace(tlsServer.URL, "https", "http", 1) + "/api/guard?key=hunter2",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client(t, superagent.Config{URL: url}).Review(t.Context(), code("x"))
			require.Error(t, err)
			want := guard.Unreachable
			if name == "no TLS, but TLS" { // Go's server says 400 to plain HTTP.
				want = guard.NotAnalysable
			}
			assert.Equal(t, want, guard.FaultOf(err), err)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// A server that leaks the key back in its error must not bring it into our log.
func TestKeyEchoedByTheServiceIsNotRepeated(t *testing.T) {
	for _, said := range []string{"Invalid API key: " + superagenttest.Key, strings.Repeat("long ", 50)} {
		s := superagenttest.New(t, superagenttest.Status(401, `{"error":`+quoted(said)+`}`))
		_, err := client(t, superagent.Config{URL: s.URL}).Review(t.Context(), code("x"))
		assert.ErrorContains(t, err, "check api_key")
		assert.NotContains(t, err.Error(), said)
	}
}

func TestClientThatLeavesIsNoTimeout(t *testing.T) {
	s := superagenttest.New(t, superagenttest.Hangs)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		assert.Eventually(t, func() bool { return len(s.Requests()) == 1 }, 5*time.Second, time.Millisecond)
		leave()
	}()
	_, err := client(t, superagent.Config{URL: s.URL}).Review(ctx, code("x"))
	assert.Equal(t, guard.Canceled, guard.FaultOf(err))
}

// A neighbour's proxy copied all of the client's headers to its inspector.
func TestRequestCarriesTheTextAndOurOwnHeadersOnly(t *testing.T) {
	s := superagenttest.New(t, superagenttest.Says(superagenttest.Pass))
	subject := code("print('<&>\u2028')")
	subject.Labels = map[string]string{guard.LabelClient: "team-a", guard.LabelSandbox: "sbx1", guard.LabelEnvNames: "E2B_API_KEY"}
	for _, c := range []struct {
		cfg  superagent.Config
		body map[string]any
	}{
		{superagent.Config{}, map[string]any{"text": subject.Text}},
		{superagent.Config{Wire: superagent.WirePrompt}, map[string]any{"prompt": subject.Text}},
		{superagent.Config{SystemPrompt: "be strict"}, map[string]any{"text": subject.Text, "system_prompt": "be strict"}},
	} {
		c.cfg.URL = s.URL
		_, err := client(t, c.cfg).Review(t.Context(), subject)
		require.NoError(t, err)
		got := s.Requests()[len(s.Requests())-1]
		assert.Equal(t, c.body, got.Body)
		assert.Equal(t, "/api/guard", got.Path)
		assert.Equal(t, http.Header{
			"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Authorization": {"Bearer " + superagenttest.Key},
			"Content-Length": got.Header["Content-Length"], "Content-Type": {"application/json"}, "User-Agent": {"e2bguard"},
			"X-Superagent-Api-Key": {superagenttest.Key},
		}, got.Header)
	}
}

// superagent-ai/superagent processInput: a text that starts with http was fetched,
// and what came back was judged instead. providers/superagent.ts: after 5 s the
// same text was posted to a second host.
func TestOnlyTheConfiguredURLIsDialled(t *testing.T) {
	s := superagenttest.New(t, superagenttest.Says(superagenttest.Pass))
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a URL in the text was fetched") }))
	defer other.Close()
	var mu sync.Mutex
	dialled := map[string]bool{}
	dialler := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		dialled[address] = true
		mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	a := client(t, superagent.Config{URL: s.URL, Transport: dialler})
	for _, text := range []string{other.URL + "/x\nimport os", other.URL, "http://h.invalid", "data:application/pdf;base64,AAAA"} {
		_, err := a.Review(t.Context(), code(text))
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"text": text}, s.Requests()[len(s.Requests())-1].Body)
	}
	assert.Equal(t, map[string]bool{strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/api/guard"): true}, dialled)
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("followed") }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := superagenttest.New(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		_, err := client(t, superagent.Config{URL: s.URL}).Review(t.Context(), code("x"))
		assert.Equal(t, guard.Misconfigured, guard.FaultOf(err))
	}
}

func TestFilesAndToolsAreJudgedWithTheirTarget(t *testing.T) {
	s := superagenttest.New(t, superagenttest.Says(superagenttest.Pass))
	a := client(t, superagent.Config{URL: s.URL})
	for want, subject := range map[string]guard.Subject{
		"write /root/.ssh/authorized_keys\nssh-rsa AAAA": {Kind: guard.KindFile, Target: "/root/.ssh/authorized_keys", Text: "ssh-rsa AAAA", Labels: map[string]string{guard.LabelAction: "write"}},
		"remove /home\n":                     {Kind: guard.KindFile, Target: "/home", Labels: map[string]string{guard.LabelAction: "remove"}},
		"tool fetch\n{\"url\":\"http://h\"}": {Kind: guard.KindTool, Target: "fetch", Text: `{"url":"http://h"}`},
		"write /a\\nwrite /b\nx":             {Kind: guard.KindFile, Target: "/a\nwrite /b", Text: "x", Labels: map[string]string{guard.LabelAction: "write"}},
		"ls -la":                             {Kind: guard.KindCommand, Target: "tag", Text: "ls -la"},
		"RUN ls":                             {Kind: guard.KindBuild, Text: "RUN ls"},
	} {
		_, err := a.Review(t.Context(), subject)
		require.NoError(t, err)
		assert.Equal(t, want, s.Requests()[len(s.Requests())-1].Body["text"])
	}
}

// The API answers 400 to an empty text; an empty cell must still run.
func TestEmptyTextPassesWithoutACall(t *testing.T) {
	s := superagenttest.New(t, superagenttest.Status(400, `{"error":"Invalid text provided"}`))
	for _, text := range []string{"", " \n\t"} {
		v, err := client(t, superagent.Config{URL: s.URL}).Review(t.Context(), code(text))
		require.NoError(t, err)
		assert.Equal(t, guard.Pass, v.Decision)
	}
	assert.Empty(t, s.Requests())
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for want, cfg := range map[string]superagent.Config{
		"no api_key":                    {},
		"api_key holds white space":     {APIKey: redact.NewSecret("a b")},
		"characters that no header":     {APIKey: redact.NewSecret("ab\r\nX-Evil: 1")},
		`unknown wire "xml"`:            {APIKey: key, Wire: "xml"},
		"not an absolute http":          {APIKey: key, URL: "guard.test/api"},
		"or https URL":                  {APIKey: key, URL: "ftp://guard.test/"},
		"write it as https://host/path": {APIKey: key, URL: "https://"},
		"cannot be parsed":              {APIKey: key, URL: "https://h:hunter2\x7f@/"},
		"a user or password":            {APIKey: key, URL: "https://u:hunter2@h.test/"},
		"a fragment":                    {APIKey: key, URL: "https://h.test/#x"},
	} {
		_, err := superagent.New(cfg)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.NotContains(t, fmt.Sprintf("%+v", cfg), superagenttest.Key)
	}
	_, err := superagent.New(superagent.Config{Wire: "xml", URL: "x"})
	assert.ErrorContains(t, err, "no api_key")
	assert.ErrorContains(t, err, "unknown wire")
	assert.ErrorContains(t, err, "not an absolute")
}

func TestDefaultsAreThePublicService(t *testing.T) {
	var asked string
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.String()
		body, _ := io.ReadAll(r.Body)
		asked += " " + strings.TrimSpace(string(body))
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(superagenttest.Pass))}, nil
	})
	_, err := client(t, superagent.Config{Transport: transport}).Review(t.Context(), code("x"))
	require.NoError(t, err)
	assert.Equal(t, `https://app.superagent.sh/api/guard {"text":"x"}`, asked)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestDigestChangesWithWhatDecides(t *testing.T) {
	seen := map[string]bool{}
	for _, cfg := range []superagent.Config{{}, {URL: "https://h.test"}, {Wire: superagent.WirePrompt}, {SystemPrompt: "x"}} {
		seen[client(t, cfg).Digest()] = true
	}
	assert.Len(t, seen, 4)
	assert.Equal(t, client(t, superagent.Config{}).Digest(), client(t, superagent.Config{APIKey: redact.NewSecret("another")}).Digest())
}

// A long text goes in chunks, each within what the service's clients send.
func TestLongTextGoesInChunks(t *testing.T) {
	s := superagenttest.New(t, superagenttest.Says(superagenttest.Pass))
	chain, err := guard.NewChain([]guard.Link{{
		Name: "superagent", Guard: client(t, superagent.Config{URL: s.URL}), Remote: true, Window: superagent.DefaultWindow, MaskSecrets: redact.NewMasker(key).Mask,
	}}, guard.ChainOptions{})
	require.NoError(t, err)
	v, err := chain.Review(t.Context(), code(strings.Repeat("x", 50000)+superagenttest.Key))
	require.NoError(t, err)
	assert.Equal(t, guard.Pass, v.Decision)
	assert.Equal(t, "superagent", v.Guard)
	require.Len(t, s.Requests(), 8)
	for _, r := range s.Requests() {
		text := r.Body["text"].(string)
		assert.LessOrEqual(t, len(text), superagent.DefaultWindow)
		assert.NotContains(t, text, superagenttest.Key)
	}
}
