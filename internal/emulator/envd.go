package emulator

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// envdHandler is the daemon of one sandbox: token, user, then RPC or REST.
func (sb *sandbox) envdHandler() http.Handler {
	opts := connect.WithInterceptors(recordMessages{})
	rpc := sb.processHandlers(opts)
	for pattern, h := range sb.filesystemHandlers(opts) {
		rpc[pattern] = h
	}
	errors := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Origin")
		if !sb.authorized(r) {
			writeRESTError(w, http.StatusUnauthorized,
				"unauthorized access, please provide a valid access token or method signing if supported")
			return
		}
		u, err := basicUser(r)
		if err != nil {
			_ = errors.Write(w, r, connect.NewError(connect.CodeUnauthenticated, err)) // The client is gone if this fails.
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), userKey{}, u))

		// The router sees the path as it was sent, the RPC handler the decoded
		// one: an encoded letter in the method works, in the service it does not.
		raw := r.URL.Path
		if r.URL.RawPath != "" {
			raw = r.URL.RawPath
		}
		if strings.HasPrefix(raw, "/process.Process/") || strings.HasPrefix(raw, "/filesystem.Filesystem/") {
			if h, ok := rpc[r.URL.Path]; ok {
				// The daemon's older RPC library takes a negative timeout for one
				// that is over; the current one would call it malformed.
				if ms := r.Header.Get("Connect-Timeout-Ms"); negative.MatchString(ms) {
					r.Header = r.Header.Clone()
					r.Header.Set("Connect-Timeout-Ms", "0")
				}
				h.ServeHTTP(w, r)
				return
			}
			http.NotFound(w, r)
			return
		}
		sb.serveREST(w, r, raw)
	})
}

var negative = regexp.MustCompile(`^-[0-9]{1,9}$`)

// restRoutes are envd's REST routes; the value lists the methods.
var restRoutes = map[string][]string{
	"/health": {http.MethodGet}, "/envs": {http.MethodGet}, "/metrics": {http.MethodGet},
	"/files": {http.MethodGet, http.MethodPost}, "/files/compose": {http.MethodPost},
}

func (sb *sandbox) serveREST(w http.ResponseWriter, r *http.Request, raw string) {
	methods, ok := restRoutes[raw]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodGet {
		query, _ := json.Marshal(map[string]string{"path": r.URL.Query().Get("path"), "username": r.URL.Query().Get("username")}) // Strings always marshal.
		pendingOf(r.Context()).commit(query)
	}
	switch r.Method + " " + raw {
	case "GET /health":
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	case "GET /envs":
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(sb.defaultEnv()) // The client is gone if this fails.
	case "GET /metrics":
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(envdMetrics{ // The client is gone if this fails.
			TS: time.Now().Unix(), CPUCount: cpuCount, CPUUsedPct: 1.5,
			MemTotalMiB: memoryMB, MemUsedMiB: 64, MemTotal: memoryMB << 20, MemUsed: 64 << 20, MemCache: 1 << 20,
			DiskUsed: 256 << 20, DiskTotal: diskMB << 20,
		})
	case "GET /files":
		sb.getFile(w, r)
	case "POST /files":
		sb.postFiles(w, r)
	case "POST /files/compose":
		sb.composeFiles(w, r)
	default:
		for _, m := range methods {
			w.Header().Add("Allow", m)
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

type envdMetrics struct {
	TS          int64   `json:"ts"`
	CPUCount    uint32  `json:"cpu_count"`
	CPUUsedPct  float32 `json:"cpu_used_pct"`
	MemTotalMiB uint64  `json:"mem_total_mib"`
	MemUsedMiB  uint64  `json:"mem_used_mib"`
	MemTotal    uint64  `json:"mem_total"`
	MemUsed     uint64  `json:"mem_used"`
	MemCache    uint64  `json:"mem_cache"`
	DiskUsed    uint64  `json:"disk_used"`
	DiskTotal   uint64  `json:"disk_total"`
}

// authorized checks the access token. Health is open, and /files has
// signatures. Source: envd.
func (sb *sandbox) authorized(r *http.Request) bool {
	if sb.accessToken == "" || equalToken(r.Header.Get("X-Access-Token"), sb.accessToken) {
		return true
	}
	switch r.Method + r.URL.Path {
	case "GET/health", "GET/files", "POST/files":
		return true
	}
	return false
}

type userKey struct{}

// basicUser reads the user from "Authorization: Basic <user>:"; the password
// is ignored, and without the header the default user acts.
func basicUser(r *http.Request) (account, error) {
	name, _, ok := r.BasicAuth()
	if !ok {
		name = defaultUser
	}
	u, known := accounts[name]
	if !known {
		return account{}, fmt.Errorf("invalid username: '%s'", name)
	}
	return u, nil
}

func userOf(ctx context.Context) (account, error) {
	u, ok := ctx.Value(userKey{}).(account)
	if !ok {
		return account{}, connect.NewError(connect.CodeUnauthenticated, errors.New("no user specified"))
	}
	return u, nil
}

// expand makes a client's path absolute: "~" and relative paths are the
// user's home. An absolute path stays as it is, ".." included. Source: envd.
func expand(p string, u account) (string, error) {
	if strings.HasPrefix(p, "~") {
		if len(p) > 1 && p[1] != '/' && p[1] != '\\' {
			return "", fmt.Errorf("failed to expand path '%s' for user '%s': cannot expand user-specific home dir", p, u.name)
		}
		p = path.Join(u.home, p[1:])
	}
	if path.IsAbs(p) {
		return p, nil
	}
	return path.Join(u.home, p), nil
}

func writeRESTError(w http.ResponseWriter, code int, message string) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	writeError(w, code, message)
}

// recordMessages records each decoded request message before the handler
// sees it.
type recordMessages struct{}

func (recordMessages) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		pendingOf(ctx).commit(protoBody(req.Any()))
		return next(ctx, req)
	}
}

func (recordMessages) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (recordMessages) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, recordingConn{conn, pendingOf(ctx)})
	}
}

type recordingConn struct {
	connect.StreamingHandlerConn
	pending *pendingRecord
}

func (c recordingConn) Receive(msg any) error {
	if err := c.StreamingHandlerConn.Receive(msg); err != nil {
		return err
	}
	c.pending.commit(protoBody(msg))
	return nil
}

func protoBody(msg any) json.RawMessage {
	m, ok := msg.(proto.Message)
	if !ok {
		return nil
	}
	body, err := protojson.Marshal(m)
	if err != nil {
		return nil
	}
	// protojson varies its spacing on purpose; records must not.
	var compact bytes.Buffer
	if json.Compact(&compact, body) != nil {
		return nil
	}
	return compact.Bytes()
}

// basicWithPassword says whether a Basic credential carries a secret.
func basicWithPassword(v string) bool {
	plain, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(v, "Basic "))
	_, password, ok := strings.Cut(string(plain), ":")
	return err != nil || !ok || password != ""
}
