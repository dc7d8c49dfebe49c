package route

import "slices"

// Reasons shared by many rows. A Deny's text is the end of a sentence: "e2bguard
// does not allow <operation>: …".
const (
	later        = "this release does not open it"
	account      = "it changes the E2B account, not a sandbox; use E2B's own dashboard or API for it"
	internalOnly = "only E2B's own orchestrator may call it, never a client"
	byPolicy     = "decided by the option persistence"
	byBuilds     = "decided by the option builds"
	byVolumes    = "decided by the option volumes"
	pushed       = "the image of such a build is pushed to E2B's registry, past the gateway; build with Template.build of a current SDK, which sends its steps"
	readsOnly    = "reads only, and what it shows belongs to the account's key"
	toClient     = "only carries what the server says to the client"
	preflight    = "a browser's preflight: no body, no credentials, no effect"
	inSandbox    = "reads or ends what already runs in the sandbox"
)

// Table returns every row, in the order documentation shows them. Where two rows
// of one plane and method match a path, a literal segment wins over a variable.
func Table() []Row { return slices.Clone(table) }

var table = slices.Concat(ownRows, controlRows, templateRows, volumeRows, accountRows, envdRows, filesRows, interpreterRows, portRows)

// ownRows are the gateway's own endpoints. Their paths are none of E2B's.
var ownRows = []Row{
	{Own, "POST", "/api/guard", GuardAsk, Guard, "decided by the option guard_api"},
	{Own, "OPTIONS", "/api/guard", Preflight, Allow, preflight},
	{Own, "POST", "/run", ProgramRun, Guard, "decided by the option run"},
	{Own, "OPTIONS", "/run", Preflight, Allow, preflight},
}

var ownPaths = func() map[string]bool {
	paths := map[string]bool{}
	for _, row := range ownRows {
		paths[row.Pattern] = true
	}
	return paths
}()

var controlRows = []Row{
	{Control, "GET", "/health", ControlHealth, Allow, "says only that the API is up"},

	{Control, "POST", "/sandboxes", SandboxCreate, Guard, ""},
	{Control, "POST", "/v2/sandboxes", SandboxCreate, Guard, ""},
	{Control, "POST", "/sandboxes/{sandboxID}/connect", SandboxConnect, Guard, ""},
	{Control, "POST", "/v2/sandboxes/{sandboxID}/connect", SandboxConnect, Guard, ""},
	{Control, "POST", "/sandboxes/{sandboxID}/resume", SandboxResume, Guard, ""},
	{Control, "POST", "/sandboxes/{sandboxID}/fork", SandboxFork, Guard, byPolicy},
	{Control, "POST", "/sandboxes/{sandboxID}/pause", SandboxPause, Guard, byPolicy},
	{Control, "POST", "/sandboxes/{sandboxID}/snapshots", SandboxSnapshot, Guard, byPolicy},
	{Control, "POST", "/sandboxes/{sandboxID}/timeout", SandboxTimeout, Guard, ""},
	{Control, "POST", "/sandboxes/{sandboxID}/refreshes", SandboxRefresh, Guard, ""},
	{Control, "PUT", "/sandboxes/{sandboxID}/network", SandboxNetwork, Guard, ""},

	{Control, "DELETE", "/sandboxes/{sandboxID}", SandboxKill, Allow, inSandbox},
	{Control, "GET", "/sandboxes/{sandboxID}", SandboxInfo, Allow, readsOnly},
	{Control, "GET", "/sandboxes", SandboxList, Allow, readsOnly},
	{Control, "GET", "/v2/sandboxes", SandboxList, Allow, readsOnly},
	{Control, "GET", "/sandboxes/metrics", SandboxMetricsList, Allow, readsOnly},
	{Control, "GET", "/sandboxes/{sandboxID}/metrics", SandboxMetrics, Allow, readsOnly},
	{Control, "GET", "/sandboxes/{sandboxID}/logs", SandboxLogs, Allow, readsOnly},
	{Control, "GET", "/v2/sandboxes/{sandboxID}/logs", SandboxLogs, Allow, readsOnly},
	{Control, "GET", "/snapshots", SnapshotList, Allow, readsOnly},

	{Control, "OPTIONS", "/{path...}", Preflight, Allow, preflight},
}

var templateRows = []Row{
	{Control, "GET", "/templates", TemplateList, Allow, readsOnly},
	{Control, "GET", "/v2/templates", TemplateList, Allow, readsOnly},
	{Control, "GET", "/templates/{templateID}", TemplateInfo, Allow, readsOnly},
	{Control, "GET", "/templates/aliases/{alias}", TemplateAlias, Allow, readsOnly},
	{Control, "GET", "/templates/{templateID}/tags", TemplateTags, Allow, readsOnly},
	{Control, "GET", "/templates/{templateID}/builds/{buildID}/status", TemplateBuildStatus, Allow, readsOnly},
	{Control, "GET", "/templates/{templateID}/builds/{buildID}/logs", TemplateBuildLogs, Allow, readsOnly},

	{Control, "POST", "/v3/templates", TemplateCreate, Guard, byBuilds},
	{Control, "POST", "/v2/templates", TemplateCreate, Guard, byBuilds},
	{Control, "POST", "/templates", TemplateCreatePushed, Deny, pushed},
	{Control, "POST", "/templates/{templateID}", TemplateRebuild, Deny, pushed},
	{Control, "POST", "/templates/{templateID}/builds/{buildID}", TemplateBuildPushed, Deny, pushed},
	{Control, "POST", "/v2/templates/{templateID}/builds/{buildID}", TemplateBuild, Guard, byBuilds},
	{Control, "GET", "/templates/{templateID}/files/{hash}", TemplateFile, Guard, byBuilds},
	{Control, "PUT", "/templates/{templateID}/files/{hash}", TemplateFileUpload, Guard, byBuilds},
	{Control, "PATCH", "/templates/{templateID}", TemplateUpdate, Deny, account},
	{Control, "PATCH", "/v2/templates/{templateID}", TemplateUpdate, Deny, account},
	{Control, "DELETE", "/templates/{templateID}", TemplateDelete, Guard, "decided by the options builds and persistence"},
	{Control, "POST", "/templates/tags", TemplateTagAssign, Guard, byBuilds},
	{Control, "DELETE", "/templates/tags", TemplateTagDelete, Guard, byBuilds},
}

var volumeRows = []Row{
	{Control, "GET", "/volumes", VolumeList, Allow, "reads only; " + byVolumes},
	{Control, "POST", "/volumes", VolumeCreate, Guard, byVolumes},
	{Control, "GET", "/volumes/{volumeID}", VolumeInfo, Guard, byVolumes},
	{Control, "DELETE", "/volumes/{volumeID}", VolumeDelete, Guard, byVolumes},

	{Volume, "GET", "/volumecontent/{volumeID}/file", VolumeFileRead, Guard, byVolumes},
	{Volume, "PUT", "/volumecontent/{volumeID}/file", VolumeFileWrite, Guard, byVolumes},
	{Volume, "GET", "/volumecontent/{volumeID}/dir", VolumeDirList, Guard, byVolumes},
	{Volume, "POST", "/volumecontent/{volumeID}/dir", VolumeDirMake, Guard, byVolumes},
	{Volume, "GET", "/volumecontent/{volumeID}/path", VolumePathInfo, Guard, byVolumes},
	{Volume, "PATCH", "/volumecontent/{volumeID}/path", VolumePathUpdate, Guard, byVolumes},
	{Volume, "DELETE", "/volumecontent/{volumeID}/path", VolumePathRemove, Guard, byVolumes},
	{Volume, "OPTIONS", "/volumecontent/{path...}", Preflight, Allow, preflight},
}

var accountRows = []Row{
	{Control, "GET", "/teams", TeamList, Deny, "its answer holds the teams' API keys"},
	{Control, "GET", "/teams/{teamID}/metrics", TeamMetrics, Allow, readsOnly},
	{Control, "GET", "/teams/{teamID}/metrics/max", TeamMetrics, Allow, readsOnly},

	{Control, "GET", "/secrets", SecretList, Deny, account},
	{Control, "POST", "/secrets", SecretCreate, Deny, account},
	{Control, "GET", "/secrets/{secretID}", SecretInfo, Deny, account},
	{Control, "POST", "/secrets/{secretID}", SecretUpdate, Deny, account},
	{Control, "DELETE", "/secrets/{secretID}", SecretDelete, Deny, account},

	{Control, "GET", "/api-keys", APIKeyList, Deny, account},
	{Control, "POST", "/api-keys", APIKeyCreate, Deny, account},
	{Control, "PATCH", "/api-keys/{apiKeyID}", APIKeyUpdate, Deny, account},
	{Control, "DELETE", "/api-keys/{apiKeyID}", APIKeyDelete, Deny, account},
	{Control, "POST", "/access-tokens", AccessTokenCreate, Deny, account},
	{Control, "DELETE", "/access-tokens/{accessTokenID}", AccessTokenDelete, Deny, account},

	{Control, "GET", "/nodes", NodeList, Deny, account},
	{Control, "GET", "/nodes/{nodeID}", NodeInfo, Deny, account},
	{Control, "POST", "/nodes/{nodeID}", NodeUpdate, Deny, account},
	{Control, "POST", "/admin/teams/{teamID}/sandboxes/kill", AdminKillSandboxes, Deny, account},
	{Control, "GET", "/admin/sandboxes/running-counts", AdminCountSandboxes, Deny, account},
	{Control, "POST", "/admin/teams/{teamID}/builds/cancel", AdminCancelBuilds, Deny, account},
	{Control, "POST", "/admin/teams/{teamID}/api-keys", AdminAPIKeyCreate, Deny, account},
	{Control, "DELETE", "/admin/teams/{teamID}/api-keys/{apiKeyID}", AdminAPIKeyDelete, Deny, account},
}

var envdRows = []Row{
	{Envd, "POST", "/process.Process/Start", ProcessStart, Guard, ""},
	{Envd, "POST", "/process.Process/Connect", ProcessConnect, Guard, ""},
	{Envd, "POST", "/process.Process/SendInput", ProcessSendInput, Guard, ""},
	{Envd, "POST", "/process.Process/StreamInput", ProcessStreamInput, Guard, ""},
	{Envd, "POST", "/process.Process/CloseStdin", ProcessCloseStdin, Guard, ""},
	{Envd, "POST", "/process.Process/SendSignal", ProcessSendSignal, Guard, ""},
	{Envd, "POST", "/process.Process/Update", ProcessUpdate, Guard, ""},
	{Envd, "POST", "/process.Process/List", ProcessList, Guard, ""},

	{Envd, "POST", "/filesystem.Filesystem/Stat", FilesystemStat, Guard, ""},
	{Envd, "POST", "/filesystem.Filesystem/ListDir", FilesystemListDir, Guard, ""},
	{Envd, "POST", "/filesystem.Filesystem/MakeDir", FilesystemMakeDir, Guard, ""},
	{Envd, "POST", "/filesystem.Filesystem/Move", FilesystemMove, Guard, ""},
	{Envd, "POST", "/filesystem.Filesystem/Remove", FilesystemRemove, Guard, ""},
	{Envd, "POST", "/filesystem.Filesystem/WatchDir", FilesystemWatchDir, Guard, ""},
	{Envd, "POST", "/filesystem.Filesystem/CreateWatcher", FilesystemCreateWatcher, Guard, ""},
	{Envd, "POST", "/filesystem.Filesystem/GetWatcherEvents", FilesystemGetWatcherEvents, Guard, ""},
	{Envd, "POST", "/filesystem.Filesystem/RemoveWatcher", FilesystemRemoveWatcher, Guard, ""},

	{Envd, "GET", "/health", EnvdHealth, Allow, "says only that the sandbox is up"},
	{Envd, "GET", "/envs", EnvdEnvs, Deny, "it shows every variable of the sandbox's environment, secrets among them, and no E2B client needs it; a command can print the one that is meant"},
	{Envd, "GET", "/metrics", EnvdMetrics, Allow, "reads the sandbox's load"},

	{Envd, "*", "/init", EnvdInternal, Deny, internalOnly},
	{Envd, "*", "/freeze", EnvdInternal, Deny, internalOnly},
	{Envd, "*", "/unfreeze", EnvdInternal, Deny, internalOnly},
	{Envd, "*", "/collapse", EnvdInternal, Deny, internalOnly},
	{Envd, "*", "/fsfreeze", EnvdInternal, Deny, internalOnly},
	{Envd, "*", "/fsthaw", EnvdInternal, Deny, internalOnly},
	{Envd, "*", "/upgrade", EnvdInternal, Deny, internalOnly},

	{Envd, "OPTIONS", "/{path...}", Preflight, Allow, preflight},
}

var filesRows = []Row{
	{Files, "GET", "/files", FilesRead, Guard, ""},
	{Files, "POST", "/files", FilesWrite, Guard, ""},
	{Files, "POST", "/files/compose", FilesCompose, Guard, ""},
	{Files, "OPTIONS", "/files", Preflight, Allow, preflight},
	{Files, "OPTIONS", "/files/compose", Preflight, Allow, preflight},
}

var interpreterRows = []Row{
	{Interpreter, "POST", "/execute", CodeRun, Guard, ""},
	{Interpreter, "POST", "/contexts", ContextCreate, Guard, ""},
	{Interpreter, "GET", "/contexts", ContextList, Allow, readsOnly},
	{Interpreter, "POST", "/contexts/{contextID}/restart", ContextRestart, Allow, inSandbox},
	{Interpreter, "DELETE", "/contexts/{contextID}", ContextDelete, Allow, inSandbox},
	{Interpreter, "GET", "/health", CodeHealth, Allow, "says only that the interpreter is up"},
	{Interpreter, "GET", "/docs", CodeDocs, Deny, "no E2B client needs the interpreter's own documentation"},
	{Interpreter, "GET", "/openapi.json", CodeDocs, Deny, "no E2B client needs the interpreter's own documentation"},
	{Interpreter, "OPTIONS", "/{path...}", Preflight, Allow, preflight},
}

var portRows = []Row{
	{MCP, "POST", "/mcp", MCPCall, Guard, ""},
	{MCP, "GET", "/mcp", MCPStream, Allow, toClient},
	{MCP, "DELETE", "/mcp", MCPClose, Allow, "ends the client's own session"},
	// The older transport: the address to send to is the server's choice.
	{MCP, "GET", "/sse", MCPStream, Allow, toClient},
	{MCP, "POST", "/sse", MCPCall, Guard, ""},
	{MCP, "POST", "/message", MCPCall, Guard, ""},
	{MCP, "POST", "/messages", MCPCall, Guard, ""},
	{MCP, "OPTIONS", "/{path...}", Preflight, Allow, preflight},
	{Port, "*", "/{path...}", PortRequest, Guard, "decided by the option ports"},
}
