package gateway

import (
	"net/http"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// operation is what the gateway does with one row of the route table, step by
// step. A nil step does nothing: no read means that the body is not looked at,
// and the row says why that is safe.
type operation struct {
	// sees, enforced and filtered are the steps in words, for `e2bguard routes`.
	sees, enforced, filtered string

	// read decodes the body into call.msg (or call.upload).
	read func(*call) *refusal.Refusal
	// subjects is what the guard must see of what was read.
	subjects func(*call) ([]guard.Subject, *refusal.Refusal)
	// enforce edits call.msg and the headers.
	enforce func(*call) *refusal.Refusal
	// admit is asked last before the call is forwarded: it says no where the client
	// has used up what it may.
	admit func(*call) *refusal.Refusal
	// filter treats the upstream's response; the response is not looked at
	// without one. vaultFilter takes its place in vault mode.
	filter, vaultFilter func(*call, *http.Response) error
	// narrow makes a call be about the client's own sandboxes, in vault mode. Rows
	// whose path names a sandbox need none.
	narrow func(*call) *refusal.Refusal
	// open refuses an operation that an option closes, before anything is read;
	// nil where that takes the message.
	open func(Config) *refusal.Refusal
	// answer ends the call without E2B, in place of all the steps after identify:
	// see own.go.
	answer func(*call) *refusal.Refusal
}

// operations has an entry for every row that is not simply passed or refused.
var operations = map[route.Operation]operation{
	route.SandboxCreate: {
		sees:     "environment variables that are code, commands of MCP servers",
		enforced: "lifetime, network, template, persistence, volumes and where they are mounted, secure, public traffic off, owner, client limits",
		filtered: "sandbox remembered, tokens sealed, domain",
		read:     (*call).readControl, subjects: (*call).controlSubjects, enforce: (*call).enforceControl, admit: (*call).admitSandboxes, filter: (*call).learnSandboxes,
	},
	route.SandboxConnect: {
		enforced: "lifetime, client limits", filtered: "sandbox remembered, tokens sealed, domain",
		read: (*call).readControl, enforce: (*call).enforceControl, admit: (*call).admitSandboxes, filter: (*call).learnSandboxes,
	},
	route.SandboxResume: {
		enforced: "lifetime, persistence, client limits", filtered: "sandbox remembered, tokens sealed, domain",
		read: (*call).readControl, enforce: (*call).enforceControl, admit: (*call).admitSandboxes, filter: (*call).learnSandboxes,
	},
	route.SandboxFork: {
		enforced: "lifetime, persistence, client limits", filtered: "sandboxes remembered, tokens sealed, domain",
		read: (*call).readControl, enforce: (*call).enforceControl, admit: (*call).admitSandboxes, filter: (*call).learnSandboxes,
	},
	route.SandboxPause: {
		enforced: "persistence", filtered: "sandbox no longer counted",
		read: (*call).readControl, enforce: (*call).enforceControl, filter: (*call).uncountSandbox,
	},
	route.SandboxSnapshot: {
		enforced: "persistence, with client keys the name",
		read:     (*call).readControl, enforce: (*call).enforceControl,
	},
	route.SandboxTimeout: {
		enforced: "lifetime",
		read:     (*call).readControl, enforce: (*call).enforceControl,
	},
	route.SandboxRefresh: {
		enforced: "lifetime",
		read:     (*call).readControl, enforce: (*call).enforceControl,
	},
	route.SandboxInfo: {filtered: "tokens sealed, domain", filter: (*call).learnSandboxes},
	route.SandboxKill: {filtered: "sandbox forgotten", filter: (*call).forgetSandbox},
	route.SandboxList: {
		enforced: "with client keys: the client's own sandboxes", filtered: "with client keys: the client's own sandboxes, tokens sealed",
		narrow: (*call).narrowList, vaultFilter: (*call).filterSandboxes,
	},
	route.SandboxMetricsList: {filtered: "with client keys: the client's own sandboxes", vaultFilter: (*call).filterMetrics},
	route.TemplateCreate: {
		enforced: "name, processors, memory", open: buildsOpen,
		read: (*call).readControl, enforce: (*call).enforceControl,
	},
	route.TemplateBuild: {
		sees: "commands of the steps, one by one and joined, files where COPY steps put them, start and ready command, environment variables that are code", enforced: "image or template it is built from",
		open: buildsOpen, narrow: (*call).settleTemplate,
		read: (*call).readControl, subjects: (*call).buildSubjects, enforce: (*call).enforceControl,
	},
	route.TemplateFile: {
		enforced: "which files are meant", filtered: "URL to send files to", open: buildsOpen, narrow: (*call).settleTemplate,
		enforce: (*call).enforceFiles, filter: (*call).filterFiles,
	},
	route.TemplateFileUpload: {
		sees: "paths, and the text of files that are code", enforced: "files, folders and links only, none out of its folder", open: buildsOpen,
		read: (*call).readFiles, enforce: (*call).enforceUpload,
	},
	route.TemplateTagAssign:   {enforced: "name", open: buildsOpen, read: (*call).readControl, enforce: (*call).enforceControl},
	route.TemplateTagDelete:   {enforced: "name", open: buildsOpen, read: (*call).readControl, enforce: (*call).enforceControl},
	route.TemplateDelete:      {enforced: "with client keys: the client's own templates and snapshots", open: deleteOpen, narrow: (*call).settleTemplate},
	route.TemplateBuildStatus: {enforced: "with client keys: the client's own templates", narrow: (*call).settleTemplate},
	route.TemplateBuildLogs:   {enforced: "with client keys: the client's own templates", narrow: (*call).settleTemplate},
	route.TemplateList:        {filtered: "with client keys: no templates of other clients", vaultFilter: (*call).filterTemplates},
	route.SnapshotList:        {enforced: "with client keys: a sandbox of the client's own", narrow: (*call).narrowSnapshots},
	route.VolumeCreate: {
		enforced: "with client keys: the name", filtered: "token sealed, domain", open: volumesOpen,
		read: (*call).readControl, enforce: (*call).enforceControl, filter: (*call).learnVolume,
	},
	route.VolumeInfo:   {enforced: "with client keys: the client's own volumes", filtered: "token sealed, domain", open: volumesOpen, narrow: (*call).settleVolume, filter: (*call).learnVolume},
	route.VolumeDelete: {enforced: "with client keys: the client's own volumes", open: volumesOpen, narrow: (*call).settleVolume},
	route.VolumeFileRead: {
		sees: "path", enforced: "whole files where secrets are hidden", filtered: "secrets in text", open: volumesOpen,
		subjects: volumeSubjects("read"), enforce: (*call).enforceDownload, filter: (*call).filterDownload,
	},
	route.VolumeFileWrite:  {sees: "path, and the text of a file that is code", open: volumesOpen, read: (*call).readVolumeFile},
	route.VolumeDirList:    {sees: "path", open: volumesOpen, subjects: volumeSubjects("list")},
	route.VolumeDirMake:    {sees: "path", open: volumesOpen, subjects: volumeSubjects("mkdir")},
	route.VolumePathInfo:   {sees: "path", open: volumesOpen, subjects: volumeSubjects("list")},
	route.VolumePathUpdate: {sees: "path", enforced: "mode", open: volumesOpen, read: (*call).readControl, subjects: volumeSubjects("list"), enforce: (*call).enforceControl},
	route.VolumePathRemove: {sees: "path", open: volumesOpen, subjects: volumeSubjects("remove")},
	route.VolumeList:       {filtered: "with client keys: the client's own volumes", open: volumesOpen, vaultFilter: (*call).filterVolumes},
	route.SandboxNetwork: {
		enforced: "network",
		read:     (*call).readControl, enforce: (*call).enforceControl,
	},

	route.ProcessStart: {
		sees:     "program, arguments, working directory, environment variables that are code",
		enforced: "wall clock, CPU seconds, memory",
		filtered: "secrets, output limit, silence",
		read:     (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceStart, filter: (*call).filterProcess,
	},
	route.ProcessConnect: {
		filtered: "secrets, output limit, silence",
		read:     (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC, filter: (*call).filterProcess,
	},
	route.ProcessList: {
		filtered: "secrets, limits taken off the commands shown",
		read:     (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC, filter: (*call).filterList,
	},
	route.ProcessSendInput: {
		sees:     "the input with what was sent before, as what the process reads it as",
		enforced: "the process by its pid",
		filtered: "whether it arrived",
		read:     (*call).readRPC, subjects: (*call).sendInputSubjects, enforce: (*call).enforceSendInput, filter: (*call).settleInput,
	},
	route.ProcessStreamInput: {
		sees:     "each message with what was sent before, as what the process reads it as",
		enforced: "the process by its pid",
		filtered: "whether it arrived",
		read:     (*call).readInputStream, enforce: (*call).enforceInputStream, filter: (*call).filterInputStream,
	},
	route.ProcessCloseStdin: {read: (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC},
	route.ProcessSendSignal: {read: (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC},
	route.ProcessUpdate:     {read: (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceUpdate},

	route.FilesystemStat:          {sees: "path", filtered: "secrets in names", read: (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC, filter: (*call).hideNames},
	route.FilesystemListDir:       {sees: "path", filtered: "secrets in names", read: (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC, filter: (*call).hideNames},
	route.FilesystemMakeDir:       {sees: "path", filtered: "secrets in names", read: (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC, filter: (*call).hideNames},
	route.FilesystemMove:          {sees: "both paths, and the text that is moved to where it may be code", filtered: "secrets in names", read: (*call).readRPC, subjects: (*call).moveSubjects, enforce: (*call).enforceRPC, filter: (*call).hideNames},
	route.FilesystemRemove:        {sees: "path", read: (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC},
	route.FilesystemWatchDir:      {sees: "path", filtered: "silence", read: (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC, filter: (*call).filterWatch},
	route.FilesystemCreateWatcher: {sees: "path", read: (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC},
	route.FilesystemGetWatcherEvents: {
		filtered: "secrets in names",
		read:     (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC, filter: (*call).hideNames,
	},
	route.FilesystemRemoveWatcher: {read: (*call).readRPC, subjects: (*call).rpcSubjects, enforce: (*call).enforceRPC},

	route.FilesRead: {
		sees: "path", enforced: "whole files where secrets are hidden", filtered: "secrets in text",
		subjects: (*call).fileReadSubjects, enforce: (*call).enforceDownload, filter: (*call).filterDownload,
	},
	route.FilesWrite: {sees: "paths, and the text of files that are code", read: (*call).readUpload},

	route.FilesCompose: {
		sees: "paths, and the joined text of a file that is code",
		read: (*call).readCompose, subjects: (*call).composeSubjects, enforce: (*call).enforceCompose,
	},

	route.SandboxLogs: {filtered: "secrets", filter: (*call).hideInAnswer},

	route.PortRequest: {enforced: "ports that the configuration opens", enforce: (*call).enforcePort},

	route.MCPCall: {
		sees:     "tool calls with their arguments and the addresses in them, resources, prompts, answers to the server",
		filtered: "tool results recorded, or judged; secrets",
		read:     (*call).readMCP, subjects: (*call).mcpSubjects, enforce: (*call).enforceMCP, filter: (*call).filterMCP,
	},
	route.MCPStream: {filtered: "tool results recorded, or judged; secrets", filter: (*call).filterMCP},

	route.CodeRun: {
		sees:     "code, language, environment variables that are code",
		enforced: "memory of kernels",
		filtered: "secrets, output limit, result limit, wall clock, CPU time, silence",
		read:     (*call).readExecute, subjects: (*call).executeSubjects, enforce: (*call).enforceInterpreter, admit: (*call).limitKernels, filter: (*call).filterExecution,
	},
	route.ContextCreate: {
		sees: "working directory", filtered: "language remembered",
		read: (*call).readContext, subjects: (*call).contextSubjects, enforce: (*call).enforceInterpreter, filter: (*call).learnContexts,
	},
	route.ContextList:    {filtered: "languages remembered", filter: (*call).learnContexts},
	route.ContextRestart: {filtered: "the new kernel's limit set before its first code", filter: (*call).forgetKernel},
}
