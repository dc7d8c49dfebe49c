// Package effect is the vocabulary in which every front end of the static
// guard says what a piece of code does, so that rules are written once, for
// effects, and never for a language.
//
// A front end is a package with one entry point, a Parser:
//
//	func Parse(text string, budget *effect.Budget) effect.Result
//
// It must be deterministic, tolerate broken code (judge what can be read and
// add a NoteSyntax), never panic, and spend the budget as it works: at least
// one step per node or token. When Spend returns false it stops and adds a
// NoteBudget.
//
// What a front end reports are primitive effects (a file is read, a program is
// started, data is sent) with folded values. It does not judge: whether a path
// is secret or a program dangerous is the engine's business. It does not model
// programs either: it reports Exec with the program's argument vector, or
// Embedded shell text, and the engine expands "rm -rf x" into a Delete itself.
// Data flow is reported through Value.Taint: a value read from a file carries
// TaintFile and, in Origin, the path, so that the engine can decide that a send
// of it is a theft.
package effect

// Kind says what an effect does.
type Kind uint8

// The kinds of effects. The comment names what the fields hold; Target is
// always the first thing a person would ask about.
const (
	// Exec starts a program. Target: program; Args: its arguments; Data: its
	// standard input where known. FlagNetIO if its standard streams are a socket.
	Exec Kind = iota + 1
	// Eval runs text as code that the front end could not or need not read as
	// Embedded: Data is the text, Lang its language ("pickle" and "yaml" for
	// unsafe deserialisers, "native" for loaded libraries and machine code).
	Eval
	// Read reads a file. Target: path.
	Read
	// Write creates, truncates or appends to a file. Target: path; Data: what is
	// written. FlagAppend, FlagTruncate (opened for writing, nothing known to be
	// written).
	Write
	// Delete removes. Target: path; FlagRecursive for trees.
	Delete
	// Move renames or copies. Args[0]: source; Target: destination; FlagCopy.
	Move
	// Link makes a link. Target: the link; Data: what it points to.
	Link
	// Mode changes mode or owner. Target: path; Data: mode or owner as written
	// ("777", "u+s", "0o4755" folded to "4755", "root:root").
	Mode
	// Connect opens a connection. Target: host, or the URL; Port where apart.
	Connect
	// Listen waits for connections. Target: address; Port.
	Listen
	// Send gives data to the network. Target: host or URL; Data: what is sent,
	// with its taint. A query string or DNS label is data too.
	Send
	// Receive takes data from the network. Target: host or URL.
	Receive
	// Decode turns an encoding back. Target: the encoding ("base64", "hex",
	// "rot13", "zlib", "marshal", "charcode", "xor"); Data: the result.
	Decode
	// Env reads the environment. Target: the variable; empty for all of it.
	Env
	// SetEnv sets a variable. Target: name; Data: value.
	SetEnv
	// Kill signals a process. Target: pid or name ("-1": all); Data: signal.
	Kill
	// Priv changes privileges. Target: "setuid", "setgid", "capset", "seteuid",
	// "chroot", "setns", "unshare", "ptrace"; Data: argument.
	Priv
	// Spawn makes a process, thread or worker of the code itself (fork,
	// Thread, cluster.fork). FlagUnbounded where nothing ends it.
	Spawn
	// Alloc takes memory, disk or CPU of a size. Data: bytes or count as decimal
	// text where known; Target: "memory", "disk", "cpu". FlagUnbounded.
	Alloc
	// Install installs a package. Target: package or URL; Lang: the installer
	// ("pip", "npm", "apt", ...).
	Install
	// Import loads a module. Target: its name.
	Import
	// Dup binds a standard stream to something else. Target: "0", "1", "2";
	// Data: the taint of the other end (TaintNetwork for a socket).
	Dup
	// Capture records the user. Target: "keyboard", "screen", "clipboard",
	// "camera", "microphone".
	Capture
	// Escape climbs out of a language's own confinement. Target: how
	// ("subclasses", "constructor", "process.binding", "vm").
	Escape
	// Native maps or runs machine code, or calls foreign functions. Target: the
	// call ("memfd_create", "VirtualAlloc", "mmap", "ctypes").
	Native
	// Info reads facts about the host or user. Target: which ("hostname",
	// "user", "network", "processes", "os").
	Info
	// Schedule asks that something runs later or at start. Target: the means
	// ("cron", "at", "systemd", "rc"); Data: what.
	Schedule
	// Raw is a socket below TCP and UDP, or a packet forged or sniffed. Target:
	// how ("raw", "sniff", "flood").
	Raw
	// Call is a call to a function that has no effect of its own in this
	// vocabulary and that rules may still want to see. Target: dotted name after
	// aliases are resolved; Args. Front ends emit it sparingly.
	Call
	// Loop is a loop without an end (FlagUnbounded) that no other effect shows.
	Loop
	// Load runs the text of a file that the front end does not have. Target: the
	// absolute path, or in Lang's own words (a module of Python); Args: the other paths
	// it may be found at, in that order; Lang: the language, empty if the file
	// says it. FlagOptional where there may be none.
	Load
)

var kindNames = [...]string{
	Exec: "exec", Eval: "eval", Read: "read", Write: "write", Delete: "delete", Move: "move", Link: "link",
	Mode: "mode", Connect: "connect", Listen: "listen", Send: "send", Receive: "receive", Decode: "decode",
	Env: "env", SetEnv: "setenv", Kill: "kill", Priv: "priv", Spawn: "spawn", Alloc: "alloc",
	Install: "install", Import: "import", Dup: "dup", Capture: "capture", Escape: "escape",
	Native: "native", Info: "info", Schedule: "schedule", Raw: "raw", Call: "call", Loop: "loop", Load: "load",
}

// String returns the kind's name in lower case, "invalid" for none.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}

	return "invalid"
}

// Flag is a set of circumstances of an effect.
type Flag uint32

// The flags.
const (
	// FlagRecursive covers whole trees.
	FlagRecursive Flag = 1 << iota
	// FlagForce overrides a safety of the program or API.
	FlagForce
	// FlagAppend adds to what is there.
	FlagAppend
	// FlagTruncate empties what is there.
	FlagTruncate
	// FlagCopy keeps the source of a Move.
	FlagCopy
	// FlagBackground does not wait for the end.
	FlagBackground
	// FlagLoop is inside any loop or comprehension.
	FlagLoop
	// FlagUnbounded is inside a loop, a recursion or a timer that nothing ends.
	FlagUnbounded
	// FlagRecursing is inside a function or program that starts itself again.
	FlagRecursing
	// FlagNetIO has its standard streams on a network connection.
	FlagNetIO
	// FlagRoot runs with raised privileges (sudo, doas, su).
	FlagRoot
	// FlagManyHosts goes over a range of hosts.
	FlagManyHosts
	// FlagManyPorts goes over a range of ports.
	FlagManyPorts
	// FlagQuiet has its output thrown away.
	FlagQuiet
	// FlagRandom has random data or names as its object.
	FlagRandom
	// FlagRemote happens on another host (ssh host command).
	FlagRemote
	// FlagHidden was spelled so that a reader would not see it: the name was
	// computed from pieces, codes or an encoding.
	FlagHidden
	// FlagElsewhere happens in a container, a chroot or a build, not here and now.
	FlagElsewhere
	// FlagImage changes the file system of an image that a Dockerfile describes.
	FlagImage
	// FlagOptional marks a Load of a file that need not exist.
	FlagOptional
	// FlagLeaves is inside a loop that is left when what was looked for is found.
	FlagLeaves
	// FlagSelf starts the program that the code itself is.
	FlagSelf
	// FlagLibrary marks a Load that means an installed library, unless the
	// directory of the code has a file of that name.
	FlagLibrary
)

// Has says whether all flags of x are set.
func (f Flag) Has(x Flag) bool { return f&x == x }

// Span is a half-open byte range [Start, End) in the text that was parsed.
type Span struct {
	Start, End int
}

// Effect is one thing that code does.
type Effect struct {
	Kind   Kind
	Span   Span
	Target Value
	Args   []Value
	Data   Value
	Port   Value
	Lang   string
	Flags  Flag
	// Via is how it was spelled, for the person who reads the verdict:
	// "os.remove", "curl", "fs.rmSync".
	Via string
}

// Embedded is code inside code: shell text given to os.system, python given to
// python -c, a string given to eval.
type Embedded struct {
	// Lang is "bash", "python", "javascript", "typescript", "r", "java", "sql",
	// "perl", "ruby", "php"; empty to have it guessed.
	Lang string
	// Text is the code. Holes stand for parts unknown. A Text that is nothing
	// but a hole says that something unknown runs; its taint says where it came
	// from.
	Text Value
	// Span is where it stands in the outer text.
	Span Span
	// Offset is the position in the outer text at which Text stands byte for
	// byte, or -1 if it was folded, unescaped or decoded.
	Offset int
	// Via is the call that runs it ("os.system", "eval").
	Via string
	// Flags hold for everything inside it.
	Flags Flag
	// File is the absolute path of the file that Text is; empty if it is none.
	File string
}

// NoteKind says what a front end could not do, or had to do first.
type NoteKind uint8

// The notes.
const (
	// NoteSyntax: the text is broken at Offset; what follows may be unread.
	NoteSyntax NoteKind = iota + 1
	// NoteBudget: the budget ended before the text did.
	NoteBudget
	// NoteForeign: so much of it is no code in the language that the rest was not
	// read. No interpreter of the language would come that far.
	NoteForeign
	// NoteDepth: nesting beyond the limit; what is deeper is unread.
	NoteDepth
	// NoteLimited: a value was too large to fold and is held as unknown.
	NoteLimited
)

// Note is a remark of a front end about its own work.
type Note struct {
	Kind   NoteKind
	Offset int
	Text   string
}

// Result is what a front end found, in order of appearance.
type Result struct {
	Effects  []Effect
	Embedded []Embedded
	Notes    []Note
}

// Parser is a front end's entry point.
type Parser func(text string, budget *Budget) Result

// Add appends an effect.
func (r *Result) Add(e Effect) { r.Effects = append(r.Effects, e) }

// Embed appends embedded code.
func (r *Result) Embed(e Embedded) { r.Embedded = append(r.Embedded, e) }

// Note appends a remark.
func (r *Result) Note(kind NoteKind, offset int, text string) {
	r.Notes = append(r.Notes, Note{Kind: kind, Offset: offset, Text: text})
}
