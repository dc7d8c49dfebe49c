package caddymodule

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/e2bguard/e2bguard/internal/gateway"
)

// redacted is what Caddy itself writes for Authorization and cookies.
const redacted = "REDACTED"

// secretHeaders are E2B's credentials, which Caddy's access log does not know.
// Authorization is among Caddy's own.
var secretHeaders = []string{"X-Api-Key", "X-Access-Token", "X-Supabase-Token", "E2b-Traffic-Access-Token", "X-Superagent-Api-Key"}

// secretParams are the query parameters that open something by themselves.
var secretParams = []string{"signature", "token", "access_token", "api_key"}

// accessLog writes the access-log line of calls that reach the gateway, because
// Caddy's own would hold E2B's credentials: Caddy copies the request before any
// handler runs, so a handler cannot hide them, only have the line skipped and
// write it itself. Loggers, names and fields are Caddy's, so formats, files and
// filters of the `log` directive apply as ever. Nil when the server keeps no
// access log.
type accessLog struct {
	logger *zap.Logger
	server *caddyhttp.Server
}

func newAccessLog(ctx caddy.Context) *accessLog {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || server.Logs == nil {
		return nil
	}
	return &accessLog{logger: ctx.Logger(new(caddyhttp.App)).Named("log.access"), server: server}
}

// begin takes over the access-log line of a call. It returns the writer to
// answer on, and what to call when the call has ended.
func (a *accessLog) begin(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, func(*gateway.Outcome)) {
	if a == nil || !a.wants(r) {
		return w, func(*gateway.Outcome) {}
	}
	caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, true)
	line := &accessLine{log: a, request: harmless(r), answer: caddyhttp.NewResponseRecorder(w, nil, nil), start: time.Now()}
	if r.Body != nil {
		line.body.ReadCloser = r.Body
		r.Body = &line.body
	}
	return line.answer, line.write
}

// accessLine is the line of one call.
type accessLine struct {
	log     *accessLog
	request *http.Request
	answer  caddyhttp.ResponseRecorder
	body    countingBody
	start   time.Time
}

func (l *accessLine) write(o *gateway.Outcome) {
	level := zapcore.InfoLevel
	if l.answer.Status() >= http.StatusInternalServerError {
		level = zapcore.ErrorLevel
	}
	if name, ok := caddyhttp.GetVar(l.request.Context(), caddyhttp.LogLevelVar).(string); ok {
		if chosen, err := zapcore.ParseLevel(name); err == nil && chosen >= zapcore.DebugLevel && chosen <= zapcore.ErrorLevel {
			level = chosen
		}
	}
	for _, name := range l.log.names(l.request) {
		if entry := l.log.logger.Named(name).Check(level, "handled request"); entry != nil {
			entry.Write(l.fields(o)...)
		}
	}
}

// status is what the client got; of an upgrade the recorder sees nothing.
func (l *accessLine) status(o *gateway.Outcome) int {
	if status := l.answer.Status(); status != 0 || !o.Upgraded {
		return status
	}
	return http.StatusSwitchingProtocols
}

func (l *accessLine) fields(o *gateway.Outcome) []zap.Field {
	var user string
	if repl, ok := l.request.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		user, _ = repl.GetString("http.auth.user.id")
	}
	return []zap.Field{
		zap.Object("request", caddyhttp.LoggableHTTPRequest{Request: l.request}),
		zap.Int64("bytes_read", l.body.n.Load()),
		zap.String("user_id", user),
		zap.Duration("duration", time.Since(l.start)),
		zap.Int("size", l.answer.Size()),
		zap.Int("status", l.status(o)),
		zap.Object("resp_headers", caddyhttp.LoggableHTTPHeader{Header: withoutSecrets(l.answer.Header())}),
		zap.String("e2b_guard_request_id", o.RequestID),
		zap.String("e2b_guard_operation", o.Operation),
		zap.String("e2b_guard_sandbox", o.Sandbox),
		zap.String("e2b_guard_client", o.Client),
		zap.String("e2b_guard_decision", o.Decision),
	}
}

// countingBody counts what was read of a request's body. The transport may
// still be reading when the line is written.
type countingBody struct {
	io.ReadCloser
	n atomic.Int64
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

// wants says whether the server logs a request, by the rules of
// caddyhttp.Server.
func (a *accessLog) wants(r *http.Request) bool {
	if skip, ok := caddyhttp.GetVar(r.Context(), caddyhttp.LogSkipVar).(bool); ok && skip {
		return false
	}
	host := hostOnly(r.Host)
	for name := range a.server.Logs.LoggerNames {
		if certmagic.MatchWildcard(host, name) {
			return true
		}
	}
	for _, skip := range a.server.Logs.SkipHosts {
		if certmagic.MatchWildcard(host, skip) {
			return false
		}
	}
	return !a.server.Logs.SkipUnmappedHosts
}

// names are the access loggers of a request, by the rules of
// caddyhttp.ServerLogConfig; "" is the unnamed one.
func (a *accessLog) names(r *http.Request) []string {
	if chosen, ok := caddyhttp.GetVar(r.Context(), caddyhttp.AccessLoggerNameVarKey).([]any); ok {
		var names []string
		for _, n := range chosen {
			if name, ok := n.(string); ok {
				names = append(names, name)
			}
		}
		return names
	}
	host := strings.ToLower(hostOnly(r.Host))
	if names, ok := a.server.Logs.LoggerNames[host]; ok {
		return names
	}
	labels := strings.Split(host, ".")
	for i := range labels {
		labels[i] = "*"
		if names, ok := a.server.Logs.LoggerNames[strings.Join(labels, ".")]; ok {
			return names
		}
	}
	return []string{a.server.Logs.DefaultLoggerName}
}

// harmless is the request as it may be logged: what Caddy logs, without E2B's
// credentials.
func harmless(r *http.Request) *http.Request {
	return (&http.Request{
		Method: r.Method, Proto: r.Proto, Host: r.Host, RemoteAddr: r.RemoteAddr, TLS: r.TLS,
		TransferEncoding: r.TransferEncoding, RequestURI: harmlessURI(r.RequestURI), Header: withoutSecrets(r.Header),
	}).WithContext(r.Context())
}

func withoutSecrets(h http.Header) http.Header {
	clean := h.Clone()
	for _, name := range secretHeaders {
		if clean.Get(name) != "" {
			clean.Set(name, redacted)
		}
	}
	return clean
}

// harmlessURI hides secret query parameters, whatever their case and escaping,
// and leaves the rest as the client wrote it.
func harmlessURI(uri string) string {
	path, query, found := strings.Cut(uri, "?")
	if !found {
		return uri
	}
	pairs := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	for i, pair := range pairs {
		key, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		if err != nil {
			pairs[i] = redacted
			continue
		}
		for _, secret := range secretParams {
			if strings.EqualFold(name, secret) {
				pairs[i] = key + "=" + redacted
			}
		}
	}
	return path + "?" + strings.Join(pairs, "&")
}

func hostOnly(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return host
}
