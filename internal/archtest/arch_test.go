package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/e2bguard/e2bguard/"

// layers says what each part of the tree may import of this module; the longest
// matching path counts. "x/..." is x and all below it. Arrows point down only:
//
//	cmd → caddymodule → internal/gateway → {internal/e2b, policy, redact, guard}
var layers = map[string][]string{
	"cmd":         {"caddymodule"},
	"caddymodule": {"guard/...", "internal/gateway", "internal/audit/...", "internal/body", "internal/policy", "internal/redact/...", "internal/seal", "internal/demo", "internal/emulator"},

	"internal/gateway": {"internal/e2b/...", "internal/guardapi", "internal/audit", "internal/body", "internal/policy", "internal/redact", "internal/seal", "internal/pty", "guard", "guard/static"},
	"internal/audit":   {"internal/audit", "internal/redact", "guard"},
	"internal/body":    {"internal/e2b/refusal"},
	"internal/policy":  {},
	"internal/redact":  {},
	"internal/pty":     {},
	// The same wire as guard/superagent, from the other side.
	"internal/guardapi": {"internal/e2b/mcp", "internal/e2b/refusal", "internal/e2b/strictjson", "guard"},
	"internal/seal":     {"internal/redact"},

	// E2B's wire: pure functions on bytes and messages, which use the neutral
	// types of guard and redact; only control maps to policy's.
	"internal/e2b":         {"internal/e2b/...", "guard", "internal/redact"},
	"internal/e2b/control": {"internal/e2b/...", "guard", "internal/redact", "internal/policy"},

	"guard":            {"internal/redact"},
	"guard/superagent": {"guard", "internal/redact"},
	"guard/static":     {"guard", "guard/static/..."},

	// The emulator shares E2B's message types and nothing else, so that it cannot
	// repeat a mistake of the gateway.
	"internal/emulator": {"internal/e2b/envd/processpb", "internal/e2b/envd/filesystempb"},
	"internal/demo":     {"internal/emulator", "internal/policy", "internal/e2b/envd/processpb"},
	"internal/bench":    {"internal/..."},
	"internal/archtest": {},
	"deploy":            {},
}

// caddy is who may import Caddy and its libraries.
var caddy = []string{"caddymodule", "cmd"}

func TestImportsPointDownOnly(t *testing.T) {
	for file, f := range parse(t, parser.ImportsOnly) {
		dir := path.Dir(file)
		allowed, known := layerOf(dir)
		if !assert.True(t, known, "%s is in no layer: say in layers what it may import", file) {
			continue
		}
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if strings.HasPrefix(imported, "github.com/caddyserver/") {
				assert.True(t, slices.ContainsFunc(caddy, func(root string) bool { return within(dir, root) }),
					"%s imports %s: only caddymodule and cmd know Caddy", file, imported)
			}
			own, ours := strings.CutPrefix(imported, module)
			if !ours || strings.HasSuffix(file, "_test.go") {
				continue
			}
			assert.True(t, own == dir || slices.ContainsFunc(allowed, func(a string) bool { return matches(own, a) }),
				"%s imports %s; its layer may import only %v", file, own, allowed)
		}
	}
}

func layerOf(dir string) ([]string, bool) {
	for d := dir; d != "."; d = path.Dir(d) {
		if allowed, ok := layers[d]; ok {
			return allowed, true
		}
	}
	return nil, false
}

func matches(imported, pattern string) bool {
	if root, below := strings.CutSuffix(pattern, "/..."); below {
		return within(imported, root)
	}
	return imported == pattern
}

func within(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	for file, f := range parse(t, parser.PackageClauseOnly|parser.ParseComments) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
			continue
		}
		dir := path.Dir(file)
		documented[dir] = documented[dir] || f.Doc != nil || f.Name.Name == "main" && within(dir, "cmd")
	}
	for dir, ok := range documented {
		assert.True(t, ok, "package %s has no doc comment", dir)
	}
}

// TestWireFieldsAreNamedInOnePlace: a rule that knows a wire field outside
// internal/e2b would be missed when E2B renames it.
func TestWireFieldsAreNamedInOnePlace(t *testing.T) {
	fields := []string{
		"templateID", "envVars", "envdAccessToken", "trafficAccessToken", "autoPause", "autoResume", "allow_internet_access",
		"allowOut", "denyOut", "allowPublicTraffic", "maskRequestHost", "egressProxy", "volumeMounts", "env_vars", "context_id",
	}
	free := []string{"internal/e2b", "internal/emulator", "internal/demo", "internal/bench", "internal/archtest"}
	for file, f := range parse(t, 0) {
		if strings.HasSuffix(file, "_test.go") || slices.ContainsFunc(free, func(root string) bool { return within(path.Dir(file), root) }) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				assert.False(t, err == nil && slices.Contains(fields, text), "%s names the wire field %s", file, text)
			}
			return true
		})
	}
}

// TestNoUnboundedRead: whatever a client, a sandbox or a guard sends is read
// within a bound.
func TestNoUnboundedRead(t *testing.T) {
	for file, f := range parse(t, 0) {
		if strings.HasSuffix(file, "_test.go") || within(path.Dir(file), "internal/demo") || within(path.Dir(file), "internal/bench") || strings.HasSuffix(path.Dir(file), "test") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && name(call.Fun) == "io.ReadAll" {
				inner, _ := call.Args[0].(*ast.CallExpr)
				bounded := inner != nil && slices.Contains([]string{"io.LimitReader", "http.MaxBytesReader"}, name(inner.Fun))
				assert.True(t, bounded, "%s: io.ReadAll of something without a bound; use internal/body or io.LimitReader", file)
			}
			return true
		})
	}
}

// TestNoTypeAssertionToFlusher: a writer that only unwraps to a flusher would
// buffer a stream; http.NewResponseController finds it.
func TestNoTypeAssertionToFlusher(t *testing.T) {
	for file, f := range parse(t, 0) {
		ast.Inspect(f, func(n ast.Node) bool {
			if assertion, ok := n.(*ast.TypeAssertExpr); ok && assertion.Type != nil {
				assert.NotContains(t, []string{"http.Flusher", "http.Hijacker", "http.CloseNotifier"}, name(assertion.Type),
					"%s: use http.NewResponseController", file)
			}
			return true
		})
	}
}

// name is "pkg.Name" of a selector, or "".
func name(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// longFiles are the parts of the tree where files may be longer than maxLines,
// each with its reason.
var longFiles = map[string]string{
	"guard/static": "a grammar's functions call each other and are read together",
}

const (
	maxLines     = 500
	maxLinesLong = 1200
)

func TestFilesStayReadable(t *testing.T) {
	for file := range parse(t, parser.PackageClauseOnly) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
			continue
		}
		limit := maxLines
		for root := range longFiles {
			if within(file, root) {
				limit = maxLinesLong
			}
		}
		data, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		assert.LessOrEqual(t, bytes.Count(data, []byte("\n")), limit, "%s is longer than %d lines: split it by role", file, limit)
	}
}

const root = "../.."

// parse reads every Go file of the repository, by its path in it.
func parse(t *testing.T, mode parser.Mode) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, mode)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		files[filepath.ToSlash(rel)] = f
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(files), 50, "the repository was not found")
	return files
}
