package python

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// outline is what the interpreter's own parser and ours must agree on.
type outline struct {
	File    string         `json:"file"`
	Calls   map[string]int `json:"calls"`
	Imports []string       `json:"imports"`
}

// TestParserAgreesWithTheInterpreter reads the machine's own Python library
// with the interpreter's ast module and with our parser, and compares every
// call (callee and number of arguments) and every import.
func TestParserAgreesWithTheInterpreter(t *testing.T) {
	out, err := exec.Command("python3", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").Output()
	require.NoError(t, err, "python3 is needed: the parser is checked against it")

	var names []string

	err = filepath.WalkDir(strings.TrimSpace(string(out)), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "site-packages" || d.Name() == "dist-packages") {
			return filepath.SkipDir
		}

		// Some files of lib2to3's tests are broken or in another encoding on
		// purpose; the script leaves out what ast cannot read.
		if err == nil && strings.HasSuffix(path, ".py") {
			names = append(names, path)
		}

		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, names)

	if testing.Short() {
		names = names[:len(names)/8]
	}

	cmd := exec.Command("python3", "testdata/calls.py")
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n"))
	cmd.Stderr = os.Stderr
	dump, err := cmd.Output()
	require.NoError(t, err)

	var calls, missing, extra, imports, importsOff int

	var spurious, details []string

	s := bufio.NewScanner(bytes.NewReader(dump))
	s.Buffer(nil, 64<<20)

	for s.Scan() {
		var want outline
		require.NoError(t, json.Unmarshal(s.Bytes(), &want))

		text, err := os.ReadFile(want.File)
		require.NoError(t, err)

		tr := parse(string(text))
		if tr.Errors > 0 || tr.Deep || tr.Full {
			line := 1 + bytes.Count(text[:max(tr.FirstError, 0)], []byte("\n"))
			spurious = append(spurious, fmt.Sprintf("%s:%d", want.File, line))
		}

		got := outlineOf(tr)

		for k, n := range want.Calls {
			calls += n

			if d := n - got.Calls[k]; d > 0 {
				missing += d
				details = append(details, fmt.Sprintf("%s: missing %s", want.File, k))
			}
		}

		for k, n := range got.Calls {
			if d := n - want.Calls[k]; d > 0 {
				extra += d
				details = append(details, fmt.Sprintf("%s: extra %s", want.File, k))
			}
		}

		imports += len(want.Imports)

		if strings.Join(want.Imports, ",") != strings.Join(got.Imports, ",") {
			importsOff++
			details = append(details, want.File+": imports differ")
		}
	}

	require.NoError(t, s.Err())
	t.Logf("%d calls, %d missing, %d extra; %d imports, %d files differ", calls, missing, extra, imports, importsOff)

	show := details[:min(len(details), 40)]
	require.Empty(t, spurious, "errors reported in code that the interpreter accepts")
	require.LessOrEqual(t, float64(missing+extra), 0.001*float64(calls), "calls differ:\n%s", strings.Join(show, "\n"))
	require.Zero(t, importsOff, "imports differ:\n%s", strings.Join(show, "\n"))
}

func outlineOf(t *tree.Tree) outline {
	o := outline{Calls: map[string]int{}, Imports: []string{}}

	var walk func(id tree.ID)

	walk = func(id tree.ID) {
		for ; id != 0; id = t.At(id).Next {
			n := *t.At(id)

			switch n.Kind {
			case tree.Call:
				arity := 0
				for a := n.B; a != 0; a = t.At(a).Next {
					arity++
				}

				o.Calls[fmt.Sprintf("%s/%d", pathOf(t, n.A), arity)]++
			case tree.Case:
				// A pattern looks like a call and is none.
				walk(n.B)
				walk(n.C)

				continue
			case tree.Import:
				module := t.Text(id)

				if n.Flag&tree.FlagFrom == 0 {
					as := ""
					if n.A != 0 {
						as = t.Text(t.At(n.A).A)
					}

					o.Imports = append(o.Imports, module+" "+as)

					continue
				}

				for a := n.A; a != 0; a = t.At(a).Next {
					as := ""
					if t.At(a).A != 0 {
						as = t.Text(t.At(a).A)
					}

					o.Imports = append(o.Imports, module+":"+t.Text(a)+" "+as)
				}

				continue
			default:
			}

			walk(n.A)
			walk(n.B)
			walk(n.C)
		}
	}
	walk(t.Root)
	sort.Strings(o.Imports)

	return o
}

func pathOf(t *tree.Tree, id tree.ID) string {
	n := t.At(id)

	switch n.Kind {
	case tree.Name:
		switch t.Text(id) {
		case "...", "True", "False", "None":
			return "?"
		}

		return t.Text(id)
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
