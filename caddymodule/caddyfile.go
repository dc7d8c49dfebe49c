package caddymodule

import (
	"errors"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// parseCaddyfile sets up the handler from the directive. See
// Handler.UnmarshalCaddyfile for the syntax.
func parseCaddyfile(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	warnAdmin(h)
	handler := new(Handler)
	if err := handler.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	return handler, nil
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	e2b_guard [<matcher>] {
//		upstream {
//			api_url     <url>
//			sandbox_url <url>
//			api_key     <key>
//			domains     <domain...>
//			legacy
//		}
//		client        <name> <key> [{ <client limits> }]
//		client_limits {
//			sandboxes   <number>|off
//			creations   <number>|off
//			guard_calls <number>|off
//		}
//		share         <client> <client...>
//		seal_key      <key...>
//		signed_uploads path|any
//		public_domain <domain>
//		guard         static [{ profile <word>; disable <rules...> }]
//		guard         superagent { url <url>; api_key <key>; ... }
//		profile       strict|balanced|permissive
//		mode          enforce|shadow
//		on_error      block|allow
//		limits {
//			sandbox_lifetime      <default> [<max>]
//			wall_clock            <duration>|off
//			background_wall_clock <duration>|off
//			cpu_seconds           <seconds>|off
//			memory                <size>|off
//			output                <size>|off
//		}
//		network     blocked | allow <preset|host|address|cidr...> | allow internet
//		verify      on|off
//		templates   <id...>
//		builds {
//			from_image    <image...>
//			from_template <id...>
//			cpu           <n>
//			memory        <size>
//		}
//		ports       <port|first-last...>
//		pty         guard|deny
//		persistence deny | allow [pause] [snapshot] [fork]
//		tool_results record|guard
//		buffer {
//			temp_dir     <folder>
//			spill        <size>
//			ceiling      <size>
//			max_message  <size>
//			max_upload   <size>
//			read_timeout <duration>
//		}
//		run [{
//			template    <language> <id>
//			timeout     <duration>
//			cpu_seconds <seconds>|off
//			memory      <size>|off
//			output      <size>
//			pool        <number>
//		}]
//		guard_api
//		audit <path> [{
//			durability sync|async
//			on_failure block|allow
//			log_code   full|head [<size>]|digest
//			output     <size>|off
//			rotate     <size>|off
//			keep       <number>|off
//			keep_for   <duration>|off
//			store      <path>
//		}]
//	}
//
// Each option may be given once, client, share and guard any number of times.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the directive's name
	if d.NextArg() {
		return d.Errf("unexpected %q after e2b_guard: options go into a block, one on each line", d.Val())
	}
	if err := parseBlock(d, "e2b_guard", options(h)); err != nil {
		return err
	}
	return at(d, errors.Join(h.checkVault(), h.checkShare(), h.checkRun(), h.checkGuardAPI()))
}

// option is one line of a block: what it is called, how it is read, and what
// the reference says about it.
type option struct {
	name string
	// syntax and fallback are for the reference: what follows the name, and what
	// holds where the option is missing.
	syntax, fallback, doc string
	// many allows the option to be repeated.
	many bool
	set  func(d *caddyfile.Dispenser) error
	// block lists the options of the option's own block, for the reference.
	block []option
}

// parseBlock reads the block at the dispenser's current nesting. What it does
// not know, or knows already, is an error with file and line.
func parseBlock(d *caddyfile.Dispenser, where string, opts []option) error {
	first := map[string]int{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		i := slices.IndexFunc(opts, func(o option) bool { return o.name == name })
		if i < 0 {
			return unknownOption(d, where, name, opts)
		}
		o := opts[i]
		if line, again := first[name]; again && !o.many {
			return d.Errf("%s is given twice, first on line %d; keep one", name, line)
		}
		first[name] = d.Line()
		if err := o.set(d); err != nil {
			return err
		}
	}
	return nil
}

func unknownOption(d *caddyfile.Dispenser, where, name string, opts []option) error {
	if name == "{" {
		return d.Errf("unexpected block in %s: the option before it takes none", where)
	}
	names := make([]string, 0, len(opts))
	for _, o := range opts {
		names = append(names, o.name)
	}
	if near := nearest(name, names); near != "" {
		return d.Errf("unknown option %s in %s; did you mean %s?", name, where, near)
	}
	return d.Errf("unknown option %s in %s; the options are %s", name, where, strings.Join(names, ", "))
}

// one reads the option's only value.
func one(d *caddyfile.Dispenser, example string) (string, error) {
	name := d.Val()
	args := d.RemainingArgs()
	switch {
	case len(args) == 0:
		return "", d.Errf("%s needs a value, as in: %s %s", name, name, example)
	case len(args) > 1:
		return "", d.Errf("%s takes one value, but %d were given; write it as in: %s %s", name, len(args), name, example)
	case strings.TrimSpace(args[0]) == "":
		return "", d.Errf("%s has an empty value; write it as in: %s %s", name, name, example)
	}
	return args[0], nil
}

// some reads one or more values.
func some(d *caddyfile.Dispenser, example string) ([]string, error) {
	name := d.Val()
	args := d.RemainingArgs()
	if len(args) == 0 {
		return nil, d.Errf("%s needs at least one value, as in: %s %s", name, name, example)
	}
	for i, a := range args {
		if strings.TrimSpace(a) == "" {
			return nil, d.Errf("%s has an empty value", name)
		}
		if slices.Contains(args[:i], a) {
			return nil, d.Errf("%s names %s twice", name, a)
		}
	}
	return args, nil
}

// word reads one of the given words.
func word(d *caddyfile.Dispenser, words ...string) (string, error) {
	name := d.Val()
	v, err := one(d, words[0])
	if err != nil {
		return "", err
	}
	if !slices.Contains(words, v) {
		return "", d.Errf("%s %s: write one of %s", name, v, strings.Join(words, ", "))
	}
	return v, nil
}

// noArgs refuses values before an option's block.
func noArgs(d *caddyfile.Dispenser) error {
	name := d.Val()
	if d.NextArg() {
		return d.Errf("unexpected %q after %s: its options go into a block, one on each line", d.Val(), name)
	}
	return nil
}

// text sets a field to the option's only value.
func text(to *string, example string) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) (err error) {
		*to, err = one(d, example)
		return err
	}
}

// checked sets a field to the option's only value, and checks it at once where
// no placeholder hides it, so that the error has file and line.
func checked(to *string, example string, check func(string) error) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) (err error) {
		if *to, err = one(d, example); err != nil || strings.Contains(*to, "{") {
			return err
		}
		return at(d, check(*to))
	}
}

// nearest returns the known word at most two edits away, or "".
func nearest(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if n := editDistance(word, k); n < distance && n < len(k) {
			best, distance = k, n
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// at puts file and line before an error that was found without them.
func at(d *caddyfile.Dispenser, err error) error {
	if err == nil {
		return nil
	}
	return d.WrapErr(err)
}
