// Package route is the product's map of E2B: which host, path and headers mean
// which sandbox, port and operation. One table, one row per thing a client can
// ask of E2B; what is not in the table does not exist.
package route

// Plane is one of the surfaces E2B offers, each with its own credentials and
// its own way of reading errors.
type Plane string

// The planes.
const (
	// Control is the REST API that makes and ends sandboxes.
	Control Plane = "control"
	// Envd is the daemon in a sandbox, port 49983: Connect RPC and a little REST.
	Envd Plane = "envd"
	// Files is envd's /files, whose bodies and signatures are its own.
	Files Plane = "files"
	// Interpreter is the code interpreter, port 49999.
	Interpreter Plane = "interpreter"
	// MCP is the MCP gateway in a sandbox, port 50005.
	MCP Plane = "mcp"
	// Port is any other port of a sandbox.
	Port Plane = "port"
	// Own is what the gateway offers itself, on the control plane's host.
	Own Plane = "gateway"
	// Volume is the content of volumes, on the control plane's host but with a
	// credential of its own.
	Volume Plane = "volume"
)

// The ports that mean a plane. Source: E2B's SDKs and envd's source.
const (
	PortEnvd        = 49983
	PortInterpreter = 49999
	PortMCP         = 50005
	// PortJupyter is the token-less Jupyter server of the code interpreter's
	// template: a root shell for whoever reaches it.
	PortJupyter = 8888
)

// Default is what happens to an operation unless the configuration says
// otherwise.
type Default string

// The defaults.
const (
	// Guard reads the call, asks the guard about every subject in it and
	// enforces policy.
	Guard Default = "guard"
	// Allow forwards the call; its row says why that is safe.
	Allow Default = "allow"
	// Deny refuses the call, naming the operation and the option that opens it.
	Deny Default = "deny"
)

// Operation is our name for one thing a client can ask: "sandbox.create",
// "process.start", "files.write".
type Operation string

// Row is one line of the table.
type Row struct {
	Plane     Plane
	Method    string // upper case; "*" for any
	Pattern   string // "/sandboxes/{sandboxID}/timeout"; "{x}" is one segment, "{x...}" the rest
	Operation Operation
	Default   Default
	// Why says why an Allow is safe, or what a Deny needs: "a later release",
	// an option's name, or that it is never legitimate.
	Why string
}

// The keys of Target.Params that name a template, the files of a COPY step and a
// volume.
const (
	ParamTemplate = "templateID"
	ParamFiles    = "hash"
	ParamVolume   = "volumeID"
)

// Target is the one interpretation of where a request goes, made once by
// Identify. Later steps and the upstream see these values, never the client's
// raw host or headers.
type Target struct {
	Plane Plane
	// Sandbox is "" on the control plane, and on the plane Files for a signed URL
	// that names none.
	Sandbox string
	Port    uint16 // 0 on the control plane
	// Path is decoded and cleaned; RawPath is its canonical escaped form, which
	// is what is forwarded.
	Path    string
	RawPath string
	Row     Row
	Params  map[string]string // the pattern's variables, decoded
	// ByHost says that the host name chose the sandbox (domain form), not the
	// routing headers (URL form).
	ByHost bool
}

// HostLabel is the first label of the host that names the target's sandbox and
// port in domain form.
func (t Target) HostLabel() string { return utoa(t.Port) + "-" + t.Sandbox }
