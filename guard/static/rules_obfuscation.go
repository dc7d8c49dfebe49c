package static

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

var obfuscationRules = []row{
	{
		Rule: Rule{
			ID: "decode-execute", Category: "obfuscated_execution", Severity: High, CWE: "CWE-506",
			Seen: "it decodes hidden text and runs it ({}).", Fine: "The same code written out plainly would be judged by what it does.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Via), e.Data.Has(effect.TaintDecoded) && e.Lang != "pickle" && e.Lang != "yaml"
		}, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "hidden-name", Category: "obfuscated_execution", Severity: High, CWE: "CWE-506",
			Seen: "it hides the name of what it runs ({}).", Fine: "Calling it by its name would be judged by what it does.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Via), e.Flags.Has(effect.FlagHidden)
		}, effect.Exec, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "hidden-address", Category: "obfuscated_execution", Severity: High, CWE: "CWE-506",
			Seen: "it hides where it connects to ({}).", Fine: "Writing the address plainly would be judged by where it leads.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			c := e.host

			return show(e.Target.Text), e.Target.Has(effect.TaintDecoded) && e.Target.IsConst() && strings.Contains(e.Target.Text, ".") && !c.Has(place.Loopback)
		}, effect.Connect, effect.Receive),
	},
	{
		Rule: Rule{
			ID: "native-code", Category: "obfuscated_execution", Severity: High, CWE: "CWE-506",
			Seen: "it loads machine code into memory and runs it ({}).", Fine: "Loading a library file by name would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			if e.Kind == effect.Eval {
				return show(e.Via), e.Lang == "native" && e.Data.Has(effect.TaintDecoded|effect.TaintDownload|effect.TaintNetwork)
			}

			return show(e.Target.Text), oneOf(e.Target.Text, "memfd_create", "VirtualAlloc", "RtlMoveMemory", "CreateRemoteThread", "mprotect", "mmap", "shellcode")
		}, effect.Native, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "unsafe-deserialise", Category: "obfuscated_execution", Severity: Medium, CWE: "CWE-502",
			Seen: "it deserialises data that may run code ({}).", Fine: "JSON, or yaml.safe_load, would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Via), (e.Lang == "pickle" || e.Lang == "yaml") && e.Data.Has(effect.TaintDecoded|effect.TaintDownload|effect.TaintNetwork|effect.TaintInput)
		}, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "armed-pickle", Category: "obfuscated_execution", Severity: High, CWE: "CWE-502",
			Seen: "it deserialises an object that starts a program ({}).", Fine: "Pickles of plain data would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			if e.Lang != "pickle" && e.Lang != "yaml" {
				return "", false
			}

			for _, m := range []string{"cos\nsystem", "cposix\nsystem", "posix\x94", "csubprocess\n", "cbuiltins\n", "c__builtin__\n", "!!python/object/apply", "!!python/object/new"} {
				if strings.Contains(e.Data.Text, m) {
					return show(e.Via), true
				}
			}

			return "", false
		}, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "eval-input", Category: "obfuscated_execution", Severity: Medium, CWE: "CWE-95",
			Seen: "it runs text that comes from outside ({}).", Fine: "Parsing the text, for instance as JSON, would be fine.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			return show(e.Data.Taint.String()), e.Data.Has(effect.TaintInput) && e.Lang != "bash" && !e.Data.Has(effect.TaintDecoded|effect.TaintDownload|effect.TaintNetwork) && e.Lang != "pickle"
		}, effect.Eval),
	},
	{
		Rule: Rule{
			ID: "sandbox-escape", Category: "container_escape", Severity: High, CWE: "CWE-693",
			Seen: "it climbs out of the language's own confinement ({}).", Fine: "Calling what you need directly would be judged by what it does.",
		},
		match: matching(func(f *facts, e *fact) (string, bool) {
			// A plug-in registry lists the subclasses of its own class; an escape
			// reaches the classes through a value's type.
			if e.Target.Text == "subclasses" {
				chain := f.textHas(e.Span, "__class__", "__mro__", "__base", "object.__subclasses__", "__init__.__globals__", "f_builtins", "__globals__[")
				if !chain && !(f.textHas(e.Span, "f_back", "gi_frame") && f.textHas(e.Span, "f_globals", "f_builtins")) {
					return "", false
				}
			}

			return show(e.Target.Text), true
		}, effect.Escape),
	},
}
