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

// UnwrapList rewrites the body of a List response (JSON or protobuf, gzip or
// not, as its headers say) so that it shows the commands clients started, not
// the wrapper around them, and no values of variables whose names say that they
// are secrets. It edits the headers to match. A body in which nothing is wrapped, or that is no list, is returned as it came. Reading more than maxBytes, before
// or after decompression, is an error.
func UnwrapList(h http.Header, body io.Reader, maxBytes int64) ([]byte, error) {
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
	changed := hideKillTree(&list)
	for _, p := range list.GetProcesses() {
		changed = Unwrap(p.GetConfig()) || changed
		changed = hideSecrets(p.GetConfig().GetEnvs()) || changed
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

func hideSecrets(envs map[string]string) (changed bool) {
	for name, value := range envs {
		if value != "" && redact.SecretName(name) {
			envs[name], changed = hiddenValue, true
		}
	}
	return changed
}
