package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/e2bguard/e2bguard/internal/audit"
	"github.com/e2bguard/e2bguard/internal/audit/store"
	"github.com/e2bguard/e2bguard/internal/gateway"
	"github.com/e2bguard/e2bguard/internal/redact/ruleset"
	"github.com/e2bguard/e2bguard/internal/seal"
)

// Audit is the log of what was decided about calls, and of what became of them.
type Audit struct {
	// Path is the file: JSON, a record a line, each chained to the one before. The
	// folder must be there. One process writes a file. Placeholders are resolved
	// when the configuration is loaded.
	Path string `json:"path"`
	// Durability is "sync" (default): a call is forwarded when its decision is on
	// disk; or "async": it is forwarded at once.
	Durability string `json:"durability,omitempty"`
	// OnFailure is what happens to a call whose decision cannot be recorded:
	// "block" (default) or "allow".
	OnFailure string `json:"on_failure,omitempty"`
	// LogCode is how much of what was judged a record holds, without secrets:
	// "head" (default), "full", or "digest" for none of it.
	LogCode string `json:"log_code,omitempty"`
	// Head is how many bytes "head" keeps. Default: 4 KiB.
	Head *int64 `json:"head,omitempty"`
	// Output is how many bytes are kept of the beginning and of the end of what a
	// program writes, each. Default: 2 KiB; 0 keeps none.
	Output *int64 `json:"output,omitempty"`
	// Rotate is the size in bytes from which a new file is begun. Default: 100 MiB;
	// 0 for never.
	Rotate *int64 `json:"rotate,omitempty"`
	// Keep is how many old files are kept. Default: 100; 0 for all.
	Keep *int `json:"keep,omitempty"`
	// KeepFor is how long old files are kept. Default: 0, for ever.
	KeepFor *caddy.Duration `json:"keep_for,omitempty"`
	// Store is a database (SQLite) that is kept up with the log, for `e2bguard audit
	// query --store`. Default: none. Placeholders are resolved when the
	// configuration is loaded.
	Store string `json:"store,omitempty"`
}

// The values of the audit's options that are a choice of words.
const (
	durabilitySync  = "sync"
	durabilityAsync = "async"
)

// The defaults of the audit.
const (
	defaultRotate = 100 << 20
	defaultKeep   = 100
	minRotate     = 64 << 10
)

func auditOptions(a *Audit) []option {
	return []option{
		{name: "durability", syntax: "sync | async", set: a.parseDurability, fallback: durabilitySync,
			doc: "`sync`: a call is forwarded when its decision is on disk. `async`: at once; a crash can lose the last second."},
		{name: "on_failure", syntax: "block | allow", set: a.parseOnFailure, fallback: onErrorBlock, doc: "What happens to a call whose decision cannot be recorded."},
		{name: "log_code", syntax: "full | head [SIZE] | digest", set: a.parseLogCode, fallback: "head 4KiB",
			doc: "How much of what was judged a record holds, without secrets. `digest`: none, of output neither. `audit replay` needs `full`."},
		{name: "output", syntax: "SIZE | off", set: size(&a.Output, "2KiB"), fallback: "2KiB", doc: "Kept of the beginning and of the end of stdout and stderr, each."},
		{name: "rotate", syntax: "SIZE | off", set: size(&a.Rotate, "100MiB"), fallback: "100MiB", doc: "The size from which a new file is begun."},
		{name: "keep", syntax: "NUMBER | off", set: count(&a.Keep, "100"), fallback: "100", doc: "Old files that are kept; `off`: all."},
		{name: "keep_for", syntax: "DURATION | off", set: duration(&a.KeepFor), fallback: "off", doc: "How long old files are kept, as in `720h` or `30d`."},
		{name: "store", syntax: "PATH", set: text(&a.Store, exampleStore), fallback: "none", doc: "An SQLite database that is kept up with the log, for `e2bguard audit query --store`."},
	}
}

const (
	exampleAudit = "/var/log/e2bguard/audit.jsonl"
	exampleStore = "/var/log/e2bguard/audit.db"
)

func (h *Handler) parseAudit(d *caddyfile.Dispenser) (err error) {
	h.Audit = new(Audit)
	if h.Audit.Path, err = one(d, exampleAudit); err != nil {
		return err
	}
	return parseBlock(d, "audit", auditOptions(h.Audit))
}

func (a *Audit) parseDurability(d *caddyfile.Dispenser) (err error) {
	a.Durability, err = word(d, durabilitySync, durabilityAsync)
	return err
}

func (a *Audit) parseOnFailure(d *caddyfile.Dispenser) (err error) {
	a.OnFailure, err = word(d, onErrorBlock, onErrorAllow)
	return err
}

func (a *Audit) parseLogCode(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch {
	case len(args) == 1 && (args[0] == string(audit.CodeFull) || args[0] == string(audit.CodeHead) || args[0] == string(audit.CodeDigest)):
	case len(args) == 2 && args[0] == string(audit.CodeHead):
		var n int64
		if err := parseSize(d, "log_code head", args[1], "", "4KiB", &n); err != nil {
			return err
		}
		a.Head = &n
	default:
		return d.Errf("log_code %s: write full, digest, or head and, if wanted, a size, as in: log_code head 4KiB", strings.Join(args, " "))
	}
	a.LogCode = args[0]
	return nil
}

// config is the audit's configuration, and where and how its log is kept.
func (a *Audit) config(repl *caddy.Replacer) (cfg gateway.Audit, place auditPlace, opts audit.Options, err error) {
	if a == nil {
		return cfg, place, opts, nil
	}
	path, err := resolve(repl, "audit", a.Path)
	if err == nil {
		place.log, err = checkAuditPath(path)
	}
	if a.Store != "" {
		path, storeErr := resolve(repl, "audit store", a.Store)
		if storeErr == nil {
			place.store, storeErr = checkAuditPath(path)
		}
		if storeErr == nil && place.store == place.log {
			storeErr = errors.New("audit store: it is the log itself; name another file, as in: store " + exampleStore)
		}
		err = errors.Join(err, storeErr)
	}
	opts = audit.Options{RotateBytes: defaultRotate, KeepFiles: defaultKeep, Async: a.Durability == durabilityAsync}
	head, output := int64(audit.DefaultHead), int64(audit.DefaultOutput)
	set(&opts.RotateBytes, a.Rotate)
	set(&opts.KeepFiles, a.Keep)
	set(&opts.KeepFor, (*time.Duration)(a.KeepFor))
	set(&head, a.Head)
	set(&output, a.Output)
	cfg = gateway.Audit{Code: audit.Code(a.LogCode), HeadBytes: int(head), OutputBytes: int(output), PassOnFailure: a.OnFailure == onErrorAllow}
	if cfg.Code == "" {
		cfg.Code = audit.CodeHead
	}
	err = errors.Join(err,
		oneOf("audit durability", a.Durability, durabilitySync, durabilityAsync),
		oneOf("audit on_failure", a.OnFailure, onErrorBlock, onErrorAllow),
		oneOf("audit log_code", a.LogCode, string(audit.CodeHead), string(audit.CodeFull), string(audit.CodeDigest)))
	if opts.RotateBytes != 0 && opts.RotateBytes < minRotate {
		err = errors.Join(err, fmt.Errorf("audit rotate %d bytes would make a file of every few records; write at least 64KiB, or off", opts.RotateBytes))
	}
	if head < 0 || head > 8<<20 || output < 0 || output > 1<<20 || opts.KeepFiles < 0 || opts.KeepFor < 0 {
		err = errors.Join(err, errors.New("audit: head can be at most 8MiB and output 1MiB, and nothing can be negative"))
	}
	return cfg, place, opts, err
}

// checkAuditPath looks at where the log is to be, and leaves nothing there: the
// file is opened when the server has started.
func checkAuditPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("audit: the folder %s is not there; create it, writable for the gateway's user alone", dir)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("audit: %s is no regular file; name a file, as in: audit %s", path, exampleAudit)
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return "", fmt.Errorf("audit: the folder %s cannot be written (%w); every call would be blocked", dir, err)
	}
	return path, nil
}

// auditLogs are the logs in use, by path: a reload must neither lose one nor open
// it twice.
var auditLogs = caddy.NewUsagePool()

// auditPlace is where a log and its store are.
type auditPlace struct{ log, store string }

// auditLog is a log in the pool, with what keeps a store up with it.
type auditLog struct {
	log *audit.Log

	mu     sync.Mutex
	path   string // of the store; "" for none
	store  *store.Store
	follow *store.Follower
}

// Destruct implements caddy.Destructor.
func (l *auditLog) Destruct() error {
	return errors.Join(l.log.Close(), l.useStore("", nil))
}

// useStore keeps the store at path up with the log, and no other.
func (l *auditLog) useStore(path string, logger *zap.Logger) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if path == l.path {
		return nil
	}
	if l.follow != nil {
		err = errors.Join(l.follow.Close(), l.store.Close())
		l.path, l.store, l.follow = "", nil, nil
	}
	if path == "" || err != nil {
		return err
	}
	if l.store, err = store.Open(path); err != nil {
		return err
	}
	l.path, l.follow = path, store.Follow(l.store, l.log.Path(), logger)
	return nil
}

// written tells whatever follows the log that there is something new.
func (l *auditLog) written() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.follow != nil {
		l.follow.Written()
	}
}

func acquireAudit(place auditPlace, opts audit.Options) (*auditLog, error) {
	v, loaded, err := auditLogs.LoadOrNew(place.log, func() (caddy.Destructor, error) {
		l := new(auditLog)
		opts.Written = l.written
		l.log = audit.New(place.log, opts)
		return l, nil
	})
	if err != nil {
		return nil, err
	}
	l := v.(*auditLog)
	if loaded {
		opts.Written = l.written
		l.log.Configure(opts)
	}
	return l, nil
}

// openAudit returns the log, which is opened when the server has started and must
// be released; nil if none is configured.
func (h *Handler) openAudit(ctx caddy.Context) (*audit.Log, error) {
	if h.Audit == nil {
		return nil, nil
	}
	h.auditOptions.Logger = h.logger
	l, err := acquireAudit(h.auditPlace, h.auditOptions)
	if err != nil {
		return nil, err
	}
	return l.log, startAudit(ctx, l, h.auditPlace.store, h.logger)
}

// auditKey is the key of the chain, from the first of the seal keys.
func auditKey(text string) (audit.Key, error) {
	keys, err := auditKeys(text)
	if err != nil {
		return audit.Key{}, err
	}
	return keys[0], nil
}

// auditKeys are the keys that chains may have been made with, one for each seal
// key.
func auditKeys(text string) ([]audit.Key, error) {
	seals, err := seal.ParseKeys(text)
	if err != nil {
		return nil, err
	}
	keys := make([]audit.Key, 0, len(seals))
	for _, s := range seals {
		secret, err := s.Derive("e2bguard audit secret v1")
		if err != nil {
			return nil, err
		}
		key, err := audit.NewKey(secret)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func releaseAudit(path string) error {
	if path == "" {
		return nil
	}
	_, err := auditLogs.Delete(path)
	return err
}

// startAudit opens the log once the server has started, so that a fault is in the
// log of the start and not in the first call's.
func startAudit(ctx caddy.Context, l *auditLog, store string, logger *zap.Logger) error {
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("waiting for the start: %w", err)
	}
	return app.(*caddyevents.App).On("started", onStart(func(ctx context.Context) error {
		if err := l.log.Start(ctx); err != nil {
			logger.Error("the audit log cannot be written; calls are treated as `audit on_failure` says", zap.String("path", l.log.Path()), zap.Error(err))
		}
		if err := l.useStore(store, logger); err != nil {
			logger.Error("the audit store cannot be kept; the log is not affected", zap.String("path", store), zap.Error(err))
		}
		return nil
	}))
}

// onStart implements caddyevents.Handler.
type onStart func(context.Context) error

// Handle implements caddyevents.Handler.
func (f onStart) Handle(ctx context.Context, _ caddy.Event) error { return f(ctx) }

var (
	_ caddy.Destructor    = (*auditLog)(nil)
	_ caddyevents.Handler = onStart(nil)
)

// loadRules gives the rules for secrets in what is kept. A nil *Rules in an
// interface would be called.
func loadRules() (audit.Masker, error) {
	rules, err := ruleset.Load()
	if err != nil {
		return nil, err
	}
	return rules, nil
}
