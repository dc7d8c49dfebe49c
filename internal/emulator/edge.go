package emulator

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Ports with a meaning. Source: E2B's SDKs.
const (
	portEnvd        = 49983
	portInterpreter = 49999
	portMCP         = 50005
)

var sandboxIDPattern = regexp.MustCompile(`^[a-z0-9]+$`)

// target is a sandbox and a port in it; the zero target is the control plane.
type target struct {
	sandbox string
	port    uint64
}

// target applies the precedence of E2B's edge: the routing headers count only
// if Host is localhost, an IP literal or starts with "sandbox."; otherwise the
// first label of Host decides and the headers are ignored.
func (e *Emulator) target(r *http.Request) (t target, isSandbox bool, err error) {
	host := (&url.URL{Host: r.Host}).Hostname()
	id, port := r.Header.Get("E2b-Sandbox-Id"), r.Header.Get("E2b-Sandbox-Port")
	shared := strings.HasPrefix(host, "sandbox.")
	if host == "localhost" || net.ParseIP(host) != nil || shared {
		switch {
		case id == "" && port == "":
			if shared {
				return target{}, true, errors.New("invalid url host")
			}
			return target{}, false, nil
		case id == "":
			return target{}, true, errors.New("Missing header: E2b-Sandbox-Id")
		case port == "":
			return target{}, true, errors.New("Missing header: E2b-Sandbox-Port")
		}
		return newTarget(id, port)
	}
	label, _, dotted := strings.Cut(host, ".")
	parts := strings.Split(label, "-")
	if !dotted || len(parts) < 2 {
		return target{}, false, nil
	}
	if _, numErr := strconv.ParseUint(parts[0], 10, 64); numErr != nil {
		return target{}, false, nil
	}
	return newTarget(parts[1], parts[0])
}

func newTarget(id, port string) (target, bool, error) {
	n, err := strconv.ParseUint(port, 10, 64)
	if err != nil {
		return target{}, true, errors.New("invalid sandbox port")
	}
	if !sandboxIDPattern.MatchString(id) {
		return target{}, true, errors.New("invalid sandbox ID")
	}
	return target{sandbox: id, port: n}, true, nil
}

// internalRoutes are envd's routes for the orchestrator, which the edge hides.
var internalRoutes = map[string]bool{
	"/init": true, "/freeze": true, "/unfreeze": true, "/collapse": true,
	"/fsfreeze": true, "/fsthaw": true, "/upgrade": true,
}

// serveSandbox does what the edge and the sandbox behind it do.
func (e *Emulator) serveSandbox(w http.ResponseWriter, r *http.Request, t target) {
	if t.port == portEnvd && internalRoutes[path.Clean(r.URL.Path)] {
		writeJSON(w, http.StatusNotFound, edgeError{
			Message: "This endpoint is reserved for the E2B control plane and is not reachable through the sandbox URL",
			Path:    r.URL.Path, Code: http.StatusNotFound,
		})
		return
	}
	sb := e.lookup(t.sandbox)
	if sb == nil || !sb.reachable(r, t.port) {
		writeJSON(w, http.StatusBadGateway, edgeError{
			Sandbox: t.sandbox, Message: "The sandbox was not found", Code: http.StatusBadGateway,
		})
		return
	}
	if token := sb.trafficToken; token != "" && t.port != portEnvd {
		switch got := r.Header.Get("E2b-Traffic-Access-Token"); {
		case got == "":
			writeJSON(w, http.StatusForbidden, edgeError{
				Sandbox: sb.id, Message: "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing",
				Code: http.StatusForbidden,
			})
			return
		case !equalToken(got, token):
			writeJSON(w, http.StatusForbidden, edgeError{
				Sandbox: sb.id, Message: "Sandbox is secured with traffic access token. Provided token does not match",
				Code: http.StatusForbidden,
			})
			return
		}
	}
	switch {
	case t.port == portEnvd && !sb.envdDown.Load():
		sb.serveEnvd(w, r)
	case t.port == portInterpreter && sb.interpreter != nil:
		sb.interpreter.ServeHTTP(w, r)
	case t.port == portMCP && sb.mcp != nil:
		sb.mcp.ServeHTTP(w, r)
	default:
		pendingOf(r.Context()).commit(nil) // The body is the program's own business.
		sb.proxyPort(w, r, t.port)
	}
}

// envdPanic is a handler of the real daemon panicking: the connection drops
// before an answer, and the edge takes the port for closed.
type envdPanic struct{}

func (sb *sandbox) serveEnvd(w http.ResponseWriter, r *http.Request) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case envdPanic:
			portNotOpen(w, sb.id, portEnvd)
		default:
			panic(p)
		}
	}()
	sb.envd.ServeHTTP(w, r)
}

// reachable says whether the edge would find the sandbox running; traffic
// wakes a paused sandbox that asked for it.
func (sb *sandbox) reachable(r *http.Request, port uint64) bool {
	sb.mu.Lock()
	paused, wakes := sb.state == statePaused, sb.autoResume
	sb.mu.Unlock()
	if !paused {
		return true
	}
	if !wakes {
		return false
	}
	if port == portEnvd {
		if sb.accessToken != "" && !equalToken(r.Header.Get("X-Access-Token"), sb.accessToken) {
			return false
		}
	} else if sb.trafficToken != "" && !equalToken(r.Header.Get("E2b-Traffic-Access-Token"), sb.trafficToken) {
		return false
	}
	const lifetimeAfterWake = 5 * time.Minute
	return sb.resume(lifetimeAfterWake, true) == nil
}

// edgeError is the edge's JSON error, fields in its order.
type edgeError struct {
	Sandbox string `json:"sandboxId,omitempty"`
	Message string `json:"message"`
	Path    string `json:"path,omitempty"`
	Port    uint64 `json:"port,omitempty"`
	Code    int    `json:"code"`
}

func portNotOpen(w http.ResponseWriter, sandbox string, port uint64) {
	writeJSON(w, http.StatusBadGateway, edgeError{
		Sandbox: sandbox, Message: "The sandbox is running but port is not open", Port: port, Code: http.StatusBadGateway,
	})
}

func fmtPort(port uint64) string { return fmt.Sprintf("127.0.0.1:%d", port) }
