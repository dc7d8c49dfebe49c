package gateway

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/body"
	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/mcp"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/policy"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// call is one request on its way through the house: what each step decided, for
// the steps after it.
type call struct {
	g       *Gateway
	w       http.ResponseWriter
	r       *http.Request
	id      string
	started time.Time
	outcome *Outcome
	// errand says that the gateway itself makes the call; nil for a client's.
	errand *errand
	// clientBody is the request's body as the client sends it.
	clientBody *clientBody

	// identify
	target  route.Target
	op      operation
	client  string  // name of the client, or a fingerprint of its key
	sandbox sandbox // what is known of the target's sandbox
	volume  volume  // what is known of the volume whose content is meant
	tokens  tokens  // E2B's own, from the client's sealed ones
	quiet   bool    // neither told nor recorded: one of many, or a part of another call

	// read
	msg    message      // nil: the body is not looked at
	upload *upload      // nil unless files.write
	files  *buildFiles  // nil unless template.file_upload
	stream *inputStream // nil unless process.stream_input
	turn   *inputTurn   // nil unless input is sent
	body   outgoing
	spool  []*body.Buffer

	// secrets are those that no sandbox has yet.
	secrets []redact.Secret

	// screen and enforce
	rulings []screened
	changes []policy.Change
	// starting is the process that the call starts, as the client asked for it.
	starting *process
	// tree is that process with all it will start.
	tree *tree
	// program is what POST /run is to run.
	program *program
	// cpu looks after the CPU time of the interpreter's code; nil without a limit.
	cpu *cpuWatch
	// deadline is what a procedure's time limit became.
	deadline envd.HeaderChanges

	// slots are the places among its client's running sandboxes that the call holds.
	slots int

	// use ends the use of a sandbox; nil if there is none.
	use func()

	// moved are the files that a move or a compose leaves behind.
	moved []fileChange

	// lookups counts the files that were looked for in the sandbox.
	lookups atomic.Int32

	forwarded bool
	// answered is the status of the upstream's answer; 0 for none.
	answered int
	evidence evidence
}

// message is the typed form of a request body.
type message interface {
	// Encode returns the canonical body to forward.
	Encode() ([]byte, error)
}

// screened is one subject and what was decided about it.
type screened struct {
	subject guard.Subject
	ruling  guard.Ruling
}

// identify settles what is asked, of which sandbox, and by whom.
func (c *call) identify() *refusal.Refusal {
	endHopByHop(c.r.Header)
	target, ref := route.Identify(c.r, c.g.cfg.PublicDomain)
	c.target = target
	limitUpgrade(c.r.Header, target.Plane)
	c.outcome.Plane, c.outcome.Operation, c.outcome.Sandbox = string(target.Plane), string(target.Row.Operation), target.Sandbox
	if ref != nil {
		return ref
	}
	c.op = operationOf(target.Row.Operation)
	ref = c.identifyClient()
	c.outcome.Client, c.outcome.Decision = c.client, decisionAllow
	if ref != nil {
		return ref
	}
	if ref := c.checkOpen(); ref != nil {
		return ref
	}
	if ref := c.settleOwner(); ref != nil {
		return ref
	}
	c.beginUse()
	return nil
}

// beginUse notes that a sandbox is used, for as long as the call takes.
func (c *call) beginUse() {
	id := cmp.Or(c.target.Sandbox, c.target.Params["sandboxID"])
	if id != "" {
		c.use = c.g.useSandbox(id, c.owner())
	}
}

// endUse undoes beginUse, and forgets a sandbox that runs no more.
func (c *call) endUse() {
	if c.use == nil {
		return
	}
	c.use()
	ok := c.answered >= http.StatusOK && c.answered < http.StatusMultipleChoices
	switch c.target.Row.Operation {
	case route.SandboxKill:
		ok = ok || c.answered == http.StatusNotFound // the call's own record says that it was gone
	case route.SandboxPause:
	default:
		return
	}
	if ok {
		c.g.state.lives.drop(c.target.Params["sandboxID"])
	}
}

// identifyClient settles who asks, from what the call itself carries.
func (c *call) identifyClient() *refusal.Refusal {
	onControlPlane := c.target.Sandbox == ""
	switch {
	case onControlPlane && c.target.Plane == route.Files:
		return c.identifyBySignature()
	case c.target.Row.Operation == route.Preflight && onControlPlane && c.g.vault():
		return nil // a browser asks whether it may ask: see answerPreflight
	case c.target.Row.Operation == route.Preflight && !c.g.vault():
		return nil
	case c.target.Row.Operation == route.TemplateFileUpload:
		return c.identifyByUploadURL()
	case c.target.Plane == route.Volume:
		return c.identifyVolume()
	case onControlPlane:
		c.outcome.Sandbox = c.target.Params["sandboxID"]
		return c.identifyByKey()
	case c.g.vault():
		return c.identifyByToken()
	default:
		c.sandbox, _ = c.g.state.lookup(c.target.Sandbox)
		c.client = c.sandbox.client
		return nil
	}
}

// identifyByKey tells the client by its API key. In pass-through mode the key is
// E2B's to judge, and only its fingerprint names the client.
func (c *call) identifyByKey() *refusal.Refusal {
	if c.errand != nil {
		c.client = c.errand.client
		return nil
	}
	key := c.r.Header.Get("X-Api-Key")
	if key == "" {
		key, _ = strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	}
	if c.target.Plane == route.Own {
		key = ownKey(c.r.Header)
	}
	if !c.g.vault() {
		if key != "" {
			c.client = "key:" + redact.NewSecret(key).Fingerprint()
		}
		return nil
	}
	// Every key is compared, so that the time taken does not tell which matched.
	digest := sha256.Sum256([]byte(key))
	for _, client := range c.g.clients {
		if subtle.ConstantTimeCompare(client.digest[:], digest[:]) == 1 {
			c.client = client.name
		}
	}
	if c.client == "" {
		return c.suspect(refusal.New(refusal.CodeUnauthorized, "this gateway does not know the API key. Set E2B_API_KEY to the key its operator gave you; a key from e2b.dev is not accepted here."))
	}
	return nil
}

// limits are those that hold for what the call makes or starts.
func (c *call) limits() policy.Limits {
	if c.errand != nil {
		return c.errand.limits
	}
	return c.g.cfg.Policy.Limits
}

// checkOpen refuses operations that are closed, before anything is read.
func (c *call) checkOpen() *refusal.Refusal {
	row := c.target.Row
	if row.Default != route.Deny {
		if c.op.open == nil {
			return nil
		}
		return c.op.open(c.g.cfg)
	}
	return refusal.New(refusal.CodeDenied, "e2bguard does not allow "+string(row.Operation)+": "+row.Why+". Do not retry by another route.")
}

// forward hands the call to the proxy.
func (c *call) forward() {
	if c.target.Row.Operation == route.Preflight && c.target.Sandbox == "" && (c.g.vault() || c.target.Plane == route.Own) {
		c.answerPreflight()
		return
	}
	if c.files != nil {
		c.storeFiles()
		return
	}
	if c.body == nil && c.r.Body != nil && c.r.Body != http.NoBody {
		// The body streams while the answer may already come: without full duplex
		// net/http would close the one when the other starts.
		_ = http.NewResponseController(c.w).EnableFullDuplex()
	}
	defer c.keepFiles()()
	c.forwarded = true
	c.g.fwd.proxy.ServeHTTP(c.w, c.r)
}

// refuse is the call's only "no".
func (c *call) refuse(ref *refusal.Refusal) {
	ref.RequestID, ref.Reason = c.id, c.g.shown(ref.Reason)
	c.outcome.Code = string(ref.Code)
	c.outcome.Decision = decisionRefuse
	if ref.Code == refusal.CodePolicy || ref.Code == refusal.CodeGuardFailed {
		c.outcome.Decision = decisionBlock
	}
	c.recordRefusal(ref)
	if c.errand != nil {
		c.errand.refused = ref
		return
	}
	path := c.target.Path
	if path == "" {
		path = c.r.URL.Path
	}
	c.clientBody.leave(c)
	c.letPagesRead()
	if ref.Status == http.StatusMethodNotAllowed {
		c.w.Header().Set("Allow", ownMethods)
	}
	form := refusal.FormFor(string(c.target.Plane), path, c.r.Header)
	if m, ok := c.msg.(*mcp.Body); ok && path == mcp.Path {
		form.IDs, form.Batch = m.Calls()
	}
	if c.files != nil && c.files.refused {
		form.Kind = refusal.Later
	}
	refusal.Write(c.w, form, ref)
}

func (c *call) close() {
	c.finish()
	if c.upload != nil {
		c.upload.stop()
	}
	if c.stream != nil {
		c.stream.stop()
	}
	c.cpu.stop()
	c.endTurn(false, !c.forwarded || c.answered > 0 && c.stream == nil)
	c.clientBody.bound(c)
	c.freeSlots()
	c.endUse()
	for _, b := range c.spool {
		_ = b.Close()
	}
}
