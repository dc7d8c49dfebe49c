package route

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// e2bOperations is what E2B offers, written down independently of the table:
// E2B's OpenAPI file (spec/openapi.yml of e2b-dev/infra), the paths of npm e2b
// 2.51 that it lacks (/v2/sandboxes, /v2/…/connect, /volumecontent), envd's proto
// files and OpenAPI file with the hand-registered /upgrade, and the code
// interpreter's routes. A new operation of E2B is added here first.
var e2bOperations = map[Plane]string{
	Control: `
		GET /health
		GET /teams
		GET /teams/{teamID}/metrics
		GET /teams/{teamID}/metrics/max
		GET /sandboxes
		POST /sandboxes
		GET /v2/sandboxes
		POST /v2/sandboxes
		GET /sandboxes/metrics
		GET /sandboxes/{sandboxID}/logs
		GET /v2/sandboxes/{sandboxID}/logs
		GET /sandboxes/{sandboxID}
		DELETE /sandboxes/{sandboxID}
		GET /sandboxes/{sandboxID}/metrics
		POST /sandboxes/{sandboxID}/pause
		POST /sandboxes/{sandboxID}/resume
		POST /sandboxes/{sandboxID}/fork
		POST /sandboxes/{sandboxID}/connect
		POST /v2/sandboxes/{sandboxID}/connect
		POST /sandboxes/{sandboxID}/timeout
		PUT /sandboxes/{sandboxID}/network
		POST /sandboxes/{sandboxID}/refreshes
		POST /sandboxes/{sandboxID}/snapshots
		GET /snapshots
		POST /v3/templates
		GET /v2/templates
		POST /v2/templates
		GET /templates/{templateID}/files/{hash}
		GET /templates
		POST /templates
		GET /templates/{templateID}
		POST /templates/{templateID}
		DELETE /templates/{templateID}
		PATCH /templates/{templateID}
		POST /templates/{templateID}/builds/{buildID}
		POST /v2/templates/{templateID}/builds/{buildID}
		PATCH /v2/templates/{templateID}
		GET /templates/{templateID}/builds/{buildID}/status
		GET /templates/{templateID}/builds/{buildID}/logs
		POST /templates/tags
		DELETE /templates/tags
		GET /templates/{templateID}/tags
		GET /templates/aliases/{alias}
		GET /nodes
		GET /nodes/{nodeID}
		POST /nodes/{nodeID}
		POST /admin/teams/{teamID}/sandboxes/kill
		GET /admin/sandboxes/running-counts
		POST /admin/teams/{teamID}/builds/cancel
		POST /admin/teams/{teamID}/api-keys
		DELETE /admin/teams/{teamID}/api-keys/{apiKeyID}
		POST /access-tokens
		DELETE /access-tokens/{accessTokenID}
		GET /api-keys
		POST /api-keys
		PATCH /api-keys/{apiKeyID}
		DELETE /api-keys/{apiKeyID}
		GET /volumes
		POST /volumes
		GET /volumes/{volumeID}
		DELETE /volumes/{volumeID}
		GET /secrets
		POST /secrets
		GET /secrets/{secretID}
		POST /secrets/{secretID}
		DELETE /secrets/{secretID}`,
	Volume: `
		GET /volumecontent/{volumeID}/file
		PUT /volumecontent/{volumeID}/file
		GET /volumecontent/{volumeID}/dir
		POST /volumecontent/{volumeID}/dir
		GET /volumecontent/{volumeID}/path
		PATCH /volumecontent/{volumeID}/path
		DELETE /volumecontent/{volumeID}/path`,
	Envd: `
		POST /process.Process/Start
		POST /process.Process/Connect
		POST /process.Process/SendInput
		POST /process.Process/StreamInput
		POST /process.Process/CloseStdin
		POST /process.Process/SendSignal
		POST /process.Process/Update
		POST /process.Process/List
		POST /filesystem.Filesystem/Stat
		POST /filesystem.Filesystem/ListDir
		POST /filesystem.Filesystem/MakeDir
		POST /filesystem.Filesystem/Move
		POST /filesystem.Filesystem/Remove
		POST /filesystem.Filesystem/WatchDir
		POST /filesystem.Filesystem/CreateWatcher
		POST /filesystem.Filesystem/GetWatcherEvents
		POST /filesystem.Filesystem/RemoveWatcher
		GET /health
		GET /envs
		GET /metrics
		POST /init
		POST /freeze
		POST /unfreeze
		POST /collapse
		POST /fsfreeze
		POST /fsthaw
		POST /upgrade`,
	Files: `
		GET /files
		POST /files
		POST /files/compose`,
	Interpreter: `
		POST /execute
		POST /contexts
		GET /contexts
		POST /contexts/{contextID}/restart
		DELETE /contexts/{contextID}
		GET /health
		GET /docs
		GET /openapi.json`,
	MCP:  `POST /mcp`,
	Port: `GET /`,
}

// ports says which sandbox port reaches a plane.
var ports = map[Plane]string{Envd: "49983", Files: "49983", Interpreter: "49999", MCP: "50005", Port: "3000"}

// example fills a pattern's variables.
func example(pattern string) string {
	segs := strings.Split(pattern, "/")
	for i, seg := range segs {
		switch {
		case seg == "{path...}":
			segs[i] = "any/thing"
		case strings.HasPrefix(seg, "{"):
			segs[i] = "x1"
		}
	}
	return strings.Join(segs, "/")
}

// identifyExample sends a row's method and pattern to its plane.
func identifyExample(t *testing.T, plane Plane, method, pattern string) Target {
	t.Helper()
	r := httptest.NewRequest(method, example(pattern), nil)
	r.Host = "gw.example.test"
	if port := ports[plane]; port != "" {
		r.Header.Set(HeaderSandboxID, "sbx1")
		r.Header.Set(HeaderSandboxPort, port)
	}
	if method == "OPTIONS" {
		r.Header.Set("Origin", "https://app.example.test")
		r.Header.Set("Access-Control-Request-Method", "POST")
	}
	got, ref := Identify(r, "")
	require.Nil(t, ref, "%s %s on %s: %v", method, pattern, plane, ref)
	return got
}

func TestEveryOperationOfE2BHasARow(t *testing.T) {
	for plane, list := range e2bOperations {
		for line := range strings.Lines(strings.TrimSpace(list)) {
			method, pattern, _ := strings.Cut(strings.TrimSpace(line), " ")
			got := identifyExample(t, plane, method, pattern)
			assert.Equal(t, plane, got.Plane, "%s %s", method, pattern)
			if plane != MCP && plane != Port {
				assert.Equal(t, pattern, got.Row.Pattern, "%s %s", method, pattern)
			}
		}
	}
}

func TestEveryRowIsReachedByItsOwnRequestsOnly(t *testing.T) {
	for _, row := range Table() {
		method := row.Method
		if method == "*" {
			method = "POST"
		}
		got := identifyExample(t, row.Plane, method, row.Pattern)
		assert.Equal(t, row, got.Row)
	}
}

func TestRowsSayWhatTheyAre(t *testing.T) {
	seen := map[[3]string]bool{}
	for _, row := range Table() {
		key := [3]string{string(row.Plane), row.Method, row.Pattern}
		assert.False(t, seen[key], "%v is there twice", key)
		seen[key] = true
		assert.Contains(t, []Default{Guard, Allow, Deny}, row.Default, "%v", key)
		if row.Default != Guard {
			assert.NotEmpty(t, row.Why, "%v: an %s must say why", key, row.Default)
		}
		assert.Regexp(t, `^[a-z_]+\.[a-z_]+$`, string(row.Operation))
	}
}

func TestEveryOperationConstantHasARow(t *testing.T) {
	src, err := os.ReadFile("operations.go")
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "operations.go", src, 0)
	require.NoError(t, err)
	inTable := map[Operation]bool{}
	for _, row := range Table() {
		inTable[row.Operation] = true
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		op, err := strconv.Unquote(lit.Value)
		require.NoError(t, err)
		found++
		assert.True(t, inTable[Operation(op)], "%s has no row", op)
		return true
	})
	assert.Len(t, inTable, found)
}

func TestWhatThisReleaseKeepsClosedStaysClosed(t *testing.T) {
	closed := []Operation{
		EnvdEnvs, EnvdInternal,
		TemplateCreatePushed, TemplateRebuild, TemplateBuildPushed, TemplateUpdate,
		SecretList, SecretInfo, SecretCreate, SecretUpdate, SecretDelete, TeamList,
		APIKeyList, APIKeyCreate, APIKeyUpdate, APIKeyDelete, AccessTokenCreate, AccessTokenDelete,
		NodeList, NodeInfo, NodeUpdate, AdminKillSandboxes, AdminCountSandboxes, AdminCancelBuilds, AdminAPIKeyCreate, AdminAPIKeyDelete,
		CodeDocs,
	}
	var got []Operation
	for _, row := range Table() {
		if row.Default == Deny {
			got = append(got, row.Operation)
		}
	}
	assert.Subset(t, got, closed)
	assert.Subset(t, closed, got)
}
