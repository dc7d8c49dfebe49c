package gateway

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the generated table of docs/encodings.md")

// matrixTable is what came of each encoding of each operation, for docs.
type matrixTable struct {
	encodings, operations []string
	arrived               map[[2]string]bool
}

func newMatrixTable() *matrixTable { return &matrixTable{arrived: map[[2]string]bool{}} }

// note is called once for each cell.
func (m *matrixTable) note(encoding, operation string, arrived bool) {
	if !slices.Contains(m.encodings, encoding) {
		m.encodings = append(m.encodings, encoding)
	}
	if !slices.Contains(m.operations, operation) {
		m.operations = append(m.operations, operation)
	}
	m.arrived[[2]string{encoding, operation}] = arrived
}

// String is the table in Markdown.
func (m *matrixTable) String() string {
	var b strings.Builder
	b.WriteString("| encoding |")
	for _, operation := range m.operations {
		b.WriteString(" `" + operation + "` |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(m.operations)) + "\n")
	for _, encoding := range m.encodings {
		b.WriteString("| " + encoding + " |")
		for _, operation := range m.operations {
			cell := "–"
			if arrived, exists := m.arrived[[2]string{encoding, operation}]; exists {
				cell = "refused"
				if arrived {
					cell = "**judged**"
				}
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// compare holds the table against the page that shows it.
func (m *matrixTable) compare(t *testing.T) {
	t.Helper()
	if t.Failed() {
		return
	}
	path := filepath.Join("..", "..", "docs", "encodings.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	const begin, end = "<!-- generated: matrix -->\n", "<!-- end: matrix -->"
	head, rest, ok := strings.Cut(string(page), begin)
	require.True(t, ok, "no line %q", begin)
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "no line %q", end)
	want := head + begin + "\n" + m.String() + "\n" + end + tail
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(page), "run: make golden")
}
