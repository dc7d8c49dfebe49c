package caddymodule

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard/static/explain"
	"github.com/e2bguard/e2bguard/internal/gateway"
)

// TestGeneratedDocs keeps the tables of the documentation what the tables of
// the code are.
func TestGeneratedDocs(t *testing.T) {
	for _, g := range []struct{ file, name, text string }{
		{"README.md", "options", optionTable("", options(new(Handler)))},
		{"docs/configuration.md", "options", optionTable("", options(new(Handler)))},
		{"docs/configuration.md", "guard static", optionTable("", staticOptions(new(Static)))},
		{"docs/configuration.md", "guard superagent", optionTable("", superagentOptions(new(Superagent)))},
		{"docs/routes.md", "routes", routeTable()},
		{"docs/rules.md", "rules", ruleTable()},
	} {
		t.Run(g.file+" "+g.name, func(t *testing.T) {
			path := repository(t, g.file)
			page := read(t, path)
			begin, end := "<!-- generated: "+g.name+" -->\n", "<!-- end: "+g.name+" -->"
			head, rest, ok := strings.Cut(page, begin)
			require.True(t, ok, "no line %q", begin)
			_, tail, ok := strings.Cut(rest, end)
			require.True(t, ok, "no line %q", end)
			want := head + begin + "\n" + g.text + "\n" + end + tail
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
				return
			}
			assert.Equal(t, want, page, "run: make golden")
		})
	}
}

func optionTable(prefix string, opts []option) string {
	var b strings.Builder
	b.WriteString("| option | default | meaning |\n|---|---|---|\n")
	writeOptions(&b, prefix, opts)
	return b.String()
}

func writeOptions(b *strings.Builder, prefix string, opts []option) {
	for _, o := range opts {
		syntax := prefix + o.name
		if o.syntax != "" && o.syntax != "{ … }" {
			syntax += " " + o.syntax
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.ReplaceAll(syntax, "|", "\\|"), cell(o.fallback), cell(o.doc))
		writeOptions(b, prefix+o.name+" ", o.block)
	}
}

func routeTable() string {
	var b strings.Builder
	b.WriteString("| plane | method | path | operation | guard sees | enforced | filtered | default |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range gateway.Routes() {
		fallback := r.Default
		if r.Why != "" {
			fallback += ": " + r.Why
		}
		fmt.Fprintf(&b, "| %s | `%s` | `%s` | `%s` | %s | %s | %s | %s |\n", r.Plane, r.Method, r.Pattern, r.Operation, cell(r.Sees), cell(r.Enforced), cell(r.Filtered), cell(fallback))
	}
	return b.String()
}

func ruleTable() string {
	var b strings.Builder
	explain.Run(&b, explain.Options{Rules: true, Format: "markdown"})
	return b.String()
}

func cell(text string) string {
	if text == "" {
		return "–"
	}
	return strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(text)
}

// TestEveryOptionIsDocumented: an option without meaning or default in
// its row would be a hole in the reference.
func TestEveryOptionIsDocumented(t *testing.T) {
	var check func(string, []option)
	check = func(where string, opts []option) {
		for _, o := range opts {
			assert.NotEmpty(t, o.doc, "%s %s", where, o.name)
			if o.block == nil {
				assert.NotEmpty(t, o.fallback, "%s %s", where, o.name)
			}
			check(where+" "+o.name, o.block)
		}
	}
	check("e2b_guard", options(new(Handler)))
	check("guard static", staticOptions(new(Static)))
	check("guard superagent", superagentOptions(new(Superagent)))
}

// TestEveryOptionHasAGoldenFile: all_options.caddyfiletest uses each option.
func TestEveryOptionHasAGoldenFile(t *testing.T) {
	golden, _, _ := strings.Cut(read(t, "testdata/all_options.caddyfiletest"), goldenSeparator)
	var check func([]option)
	check = func(opts []option) {
		for _, o := range opts {
			assert.Regexp(t, `(?m)^\t+`+o.name+`\b`, golden)
			check(o.block)
		}
	}
	check(options(new(Handler)))
	check(staticOptions(new(Static)))
	check(superagentOptions(new(Superagent)))
}

var caddyfileBlock = regexp.MustCompile("(?ms)^```[Cc]addyfile\n(.*?)^```$")

// TestCaddyfilesOfTheDocsLoad: what people copy must work.
func TestCaddyfilesOfTheDocsLoad(t *testing.T) {
	for _, name := range []string{"E2B_API_KEY", "TEAM_A_KEY", "TEAM_B_KEY", "SUPERAGENT_API_KEY"} {
		t.Setenv(name, "e2b_0123456789"+strings.ToLower(regexp.MustCompile(`[^0-9A-Fa-f]`).ReplaceAllString(name, "0")))
	}
	t.Setenv("SEAL_KEY", strings.Repeat("5e", 32))
	for _, file := range []string{"README.md", "docs/guide.md", "docs/configuration.md", "docs/troubleshooting.md", "docs/threat-model.md", "deploy/docker/Caddyfile"} {
		text := read(t, repository(t, file))
		blocks := caddyfileBlock.FindAllStringSubmatch(text, -1)
		if strings.HasSuffix(file, "Caddyfile") {
			blocks = [][]string{{"", text}}
		}
		for i, block := range blocks {
			t.Run(fmt.Sprintf("%s %d", file, i+1), func(t *testing.T) {
				text := block[1]
				if !strings.Contains(text, "e2b_guard") { // options alone
					text = "e2b_guard {\n" + text + "}\n"
				}
				if regexp.MustCompile(`(?m)^e2b_guard`).MatchString(text) { // a directive alone
					text = "{\n\tadmin off\n}\n:8080 {\n" + text + "}\n"
				}
				adapted, err := adapt(text)
				require.NoError(t, err, text)
				validate(t, adapted)
			})
		}
	}
}

// TestDocsLinkToFilesThatExist: a reader must not be sent nowhere.
func TestDocsLinkToFilesThatExist(t *testing.T) {
	pages := []string{"README.md"}
	entries, err := os.ReadDir(repository(t, "docs"))
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".md") {
			pages = append(pages, "docs/"+e.Name())
		}
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, page := range pages {
		dir := ""
		if strings.HasPrefix(page, "docs/") {
			dir = "docs/"
		}
		for _, m := range link.FindAllStringSubmatch(read(t, repository(t, page)), -1) {
			_, err := os.Stat(repository(t, dir+m[1]))
			assert.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
}
