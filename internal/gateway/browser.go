package gateway

import (
	"net/http"

	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// What E2B's API and envd say to browsers: every origin may call, and read. The
// credentials travel in headers that a page must know.
const (
	anyOrigin        = "*"
	preflightMethods = "GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS"
	preflightHeaders = "Origin,Content-Length,Content-Type,User-Agent,Authorization,X-API-Key," +
		"browser,lang,lang_version,machine,os,package_version,processor,publisher,release,sdk_runtime,system"
	preflightSeconds = "43200"
	refusalHeaders   = "E2b-Guard, Retry-After, Grpc-Status, Grpc-Message"
)

// answerPreflight answers a browser that asks whether a page may call the control
// plane. It sends no key yet, so E2B is not asked on anybody's behalf.
func (c *call) answerPreflight() {
	h := c.w.Header()
	h.Set("Access-Control-Allow-Origin", anyOrigin)
	h.Set("Access-Control-Allow-Methods", preflightMethods)
	h.Set("Access-Control-Allow-Headers", preflightHeaders)
	if c.target.Plane == route.Own {
		h.Set("Access-Control-Allow-Headers", preflightHeaders+",X-Superagent-Api-Key")
	}
	h.Set("Access-Control-Max-Age", preflightSeconds)
	c.w.WriteHeader(http.StatusNoContent)
}

// letPagesRead lets a page read a refusal where it could read E2B's answer. What
// listens on other ports decides that for itself.
func (c *call) letPagesRead() {
	if c.r.Header.Get("Origin") == "" || c.target.Plane == route.Port || c.target.Plane == route.MCP {
		return
	}
	h := c.w.Header()
	h.Set("Access-Control-Allow-Origin", anyOrigin)
	h.Set("Access-Control-Expose-Headers", refusalHeaders)
}
