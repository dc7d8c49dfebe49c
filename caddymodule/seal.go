package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/e2bguard/e2bguard/internal/seal"
)

// sealKeyFile is where a generated seal key is kept in Caddy's storage: by
// default a file of mode 0600 in Caddy's data folder.
const sealKeyFile = "e2b_guard/seal.key"

// The values of signed_uploads.
const (
	uploadsWithPath = "path"
	uploadsAnywhere = "any"
)

// sealer makes what seals the clients' tokens, from the keys of the
// configuration or else from one that is made at the first start and kept. In
// pass-through mode there is nothing to seal. Without generate none is made.
func (h *Handler) sealer(ctx caddy.Context, repl *caddy.Replacer, generate bool) (*seal.Sealer, error) {
	if len(h.Clients) == 0 {
		if len(h.SealKey) > 0 {
			return nil, errors.New("seal_key seals what clients get in place of E2B's tokens, but without a client they get E2B's own: " +
				"add `client` lines and `upstream api_key`, or remove seal_key")
		}
		if h.SignedUploads != "" {
			return nil, errors.New("signed_uploads is about URLs that are signed with this gateway's tokens, but without a client there are none: " +
				"add `client` lines and `upstream api_key`, or remove signed_uploads")
		}
		return nil, nil
	}
	var text string
	for _, given := range h.SealKey {
		resolved, err := resolve(repl, "seal_key", given)
		if err != nil {
			return nil, err
		}
		text += resolved + "\n"
	}
	if len(h.SealKey) == 0 && !generate {
		return nil, nil
	}
	if len(h.SealKey) == 0 {
		kept, err := keptSealKey(ctx, ctx.Storage())
		if err != nil {
			return nil, fmt.Errorf("no seal_key is given, and none can be kept in Caddy's storage (%w): "+
				"create one with `openssl rand -hex 32` and write, for example: seal_key {file./run/secrets/seal}", err)
		}
		h.logger.Warn("no seal_key is given, so clients' tokens are sealed with a key kept in Caddy's storage: other instances "+
			"do not know these tokens, and without that storage nobody does; create one with `openssl rand -hex 32` and write "+
			"seal_key {file./run/secrets/seal}", zap.String("key", sealKeyFile))
		text = kept
	}
	var err error
	if h.auditOptions.Key, err = auditKey(text); err != nil {
		return nil, err
	}
	return newSealer(text)
}

func newSealer(text string) (*seal.Sealer, error) {
	keys, err := seal.ParseKeys(text)
	if err != nil {
		return nil, err
	}
	return seal.New(keys...)
}

// keptSealKey returns the key in a storage, and makes it where there is none.
// Instances that share the storage share the key.
func keptSealKey(ctx context.Context, storage certmagic.Storage) (_ string, err error) {
	kept, err := storage.Load(ctx, sealKeyFile)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return string(kept), err
	}
	if err := storage.Lock(ctx, sealKeyFile); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, storage.Unlock(ctx, sealKeyFile)) }()
	kept, err = storage.Load(ctx, sealKeyFile) // another may have been faster
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return string(kept), err
	}
	made := seal.GenerateKey()
	return made, storage.Store(ctx, sealKeyFile, []byte(made+"\n"))
}

func (h *Handler) parseSealKey(d *caddyfile.Dispenser) (err error) {
	if h.SealKey, err = some(d, "{file./run/secrets/seal}"); err != nil {
		return err
	}
	for _, key := range h.SealKey {
		if strings.Contains(key, "{") {
			continue // checked when the placeholder is resolved
		}
		if _, err := seal.ParseKeys(key); err != nil {
			return at(d, err)
		}
	}
	return nil
}

func (h *Handler) parseSignedUploads(d *caddyfile.Dispenser) (err error) {
	h.SignedUploads, err = word(d, uploadsWithPath, uploadsAnywhere)
	return err
}
