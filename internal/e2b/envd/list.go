package envd

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// ShowList rewrites the body of a List response (JSON or protobuf, gzip or not, as
// its headers say) so that it shows the commands clients started, not the wrapper
// around them, no secret of the set, and no values of variables whose names say
// that they are secrets. It edits the headers to match. A body in which nothing
// changes, or that is no list, is returned as it came. Reading more than maxBytes,
// before or after decompression, is an error.
func ShowList(h http.Header, body io.Reader, maxBytes int64, secrets *redact.Set) ([]byte, error) {
	raw, err := readCapped(body, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("reading process list: %w", err)
	}
	var codec Codec
	switch base, _, _ := mime.ParseMediaType(h.Get(headerContentType)); base {
	case "application/json":
		codec = JSON
	case "application/proto":
		codec = Proto
	default:
		return raw, nil // An error page of something on the way.
	}
	payload, err := readBare(bytes.NewReader(raw), h.Get(headerContentEncoding) == "gzip", maxBytes)
	if err != nil {
		return nil, fmt.Errorf("reading process list: %w", err)
	}
	var list processpb.ListResponse
	unknown, err := unmarshal(codec, payload, &list)
	if err != nil {
		return nil, fmt.Errorf("reading process list: %w", err)
	}
	changed := hideOwnRuns(&list)
	for _, p := range list.GetProcesses() {
		changed = Unwrap(p.GetConfig()) || changed
		changed = hideSecrets(p.GetConfig(), secrets) || changed
		if clean := secrets.Replace(p.GetTag()); clean != p.GetTag() {
			p.Tag, changed = &clean, true
		}
	}
	if !changed {
		return raw, nil
	}
	h.Del(headerContentEncoding)
	h.Del("Content-Length")
	return marshal(codec, &list, unknown)
}

// hiddenValue stands for the value of a variable that is a secret.
const hiddenValue = "<secret:variable>"

// hideSecrets takes secrets out of what is shown of a process, and reports whether
// there were any.
func hideSecrets(p *processpb.ProcessConfig, secrets *redact.Set) (changed bool) {
	if p == nil {
		return false
	}
	hide := func(text string) string {
		clean := secrets.Replace(text)
		changed = changed || clean != text
		return clean
	}
	p.Cmd = hide(p.GetCmd())
	for i, arg := range p.GetArgs() {
		p.Args[i] = hide(arg)
	}
	for name, value := range p.GetEnvs() {
		if value != "" && redact.SecretName(name) {
			p.Envs[name], changed = hiddenValue, true
		} else {
			p.Envs[name] = hide(value)
		}
	}
	return changed
}
