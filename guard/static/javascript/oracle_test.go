package javascript

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	tdparse "github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// TestParserAgreesWithAnother reads the modules that come with the machine's
// node with our parser and with another, strict one, and compares every call.
func TestParserAgreesWithAnother(t *testing.T) {
	out, err := exec.Command("node", "-p", "require('path').resolve(process.execPath, '../../lib/node_modules')").Output()
	require.NoError(t, err, "node is needed: the parser is checked on its modules")

	var files, calls, missing, extra int

	var spurious, details []string

	err = filepath.WalkDir(strings.TrimSpace(string(out)), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".js") && !strings.HasSuffix(path, ".mjs") && !strings.HasSuffix(path, ".cjs") {
			return err
		}

		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		ast, err := js.Parse(tdparse.NewInputBytes(slices.Clone(text)), js.Options{})
		if err != nil {
			return nil // The other one is strict; what it cannot read is left out.
		}

		files++

		want := map[string]int{}
		js.Walk(visitor(want), &ast.BlockStmt)

		tr := parse(string(text))
		if tr.Errors > 0 || tr.Deep || tr.Full {
			line := 1 + strings.Count(string(text[:max(tr.FirstError, 0)]), "\n")
			spurious = append(spurious, fmt.Sprintf("%s:%d", path, line))
		}

		got := callsOf(tr)

		for k, n := range want {
			calls += n

			if n > got[k] {
				missing += n - got[k]
				details = append(details, fmt.Sprintf("%s: missing %s", path, k))
			}
		}

		for k, n := range got {
			if n > want[k] {
				extra += n - want[k]
				details = append(details, fmt.Sprintf("%s: extra %s", path, k))
			}
		}

		return nil
	})
	require.NoError(t, err)
	require.NotZero(t, files)
	t.Logf("%d files, %d calls, %d missing, %d extra", files, calls, missing, extra)

	require.Empty(t, spurious, "errors reported in code that another parser accepts")
	require.LessOrEqual(t, float64(missing+extra), 0.001*float64(calls), "calls differ:\n%s",
		strings.Join(details[:min(len(details), 40)], "\n"))
}

type visitor map[string]int

func (v visitor) Exit(js.INode) {}

func (v visitor) Enter(n js.INode) js.IVisitor {
	switch x := n.(type) {
	case *js.CallExpr:
		v[fmt.Sprintf("%s/%d", jsPath(x.X), len(x.Args.List))]++
	case *js.NewExpr:
		n := 0
		if x.Args != nil {
			n = len(x.Args.List)
		}

		v[fmt.Sprintf("%s/%d", jsPath(x.X), n)]++
	case *js.TemplateExpr:
		if x.Tag != nil {
			v[fmt.Sprintf("%s/%d", jsPath(x.Tag), 1)]++
		}
	}

	return v
}

func jsPath(x js.IExpr) string {
	switch e := x.(type) {
	case *js.Var:
		return string(e.Name())
	case *js.DotExpr:
		return jsPath(e.X) + "." + e.Y.String()
	case *js.CallExpr, *js.NewExpr:
		if c, ok := e.(*js.CallExpr); ok {
			return jsPath(c.X) + "()"
		}

		return jsPath(e.(*js.NewExpr).X) + "()"
	case *js.IndexExpr:
		return jsPath(e.X) + "[]"
	case *js.GroupExpr:
		return jsPath(e.X)
	case *js.LiteralExpr:
		switch e.TokenType {
		case js.ThisToken, js.SuperToken, js.ImportToken:
			return string(e.Data)
		}
	}

	return "?"
}

func callsOf(t *tree.Tree) map[string]int {
	calls := map[string]int{}

	var walk func(id tree.ID)

	walk = func(id tree.ID) {
		for ; id != 0; id = t.At(id).Next {
			n := *t.At(id)
			if n.Kind == tree.Call {
				arity := 0
				for a := n.B; a != 0; a = t.At(a).Next {
					arity++
				}

				calls[fmt.Sprintf("%s/%d", pathOf(t, n.A), arity)]++
			}

			walk(n.A)
			walk(n.B)
			walk(n.C)
		}
	}
	walk(t.Root)

	return calls
}

func pathOf(t *tree.Tree, id tree.ID) string {
	n := t.At(id)

	switch n.Kind {
	case tree.Name:
		switch s := t.Text(id); s {
		case "true", "false", "null", "new":
			return "?"
		default:
			return s
		}
	case tree.Attr:
		return pathOf(t, n.A) + "." + t.Text(id)
	case tree.Call:
		return pathOf(t, n.A) + "()"
	case tree.Index:
		return pathOf(t, n.A) + "[]"
	default:
		return "?"
	}
}
