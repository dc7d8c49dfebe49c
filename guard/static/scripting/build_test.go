package scripting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

func TestBuildFiles(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		parse effect.Parser
		text  string
		want  string
	}{
		{ParsePackage, `{"a":{"scripts":{"x":"y"}},"scripts":{"x":"y","n":1,"l":["p","q"],"m":"z"},"b":"scripts"}`, "bash:y | bash:p | bash:q | bash:z"},
		{ParsePackage, `["scripts",{"scripts":{"x":"y"}}]`, ""},
		{ParseDockerfile, "RUN a \\\n  # b\n  c\nrun [\"a\", \"it's\"]\nENV a=b\nRUN cat <<X >y\nz\nX\nCMD d", "bash:a \\\n  c | bash:'a' 'it'\\''s' | bash:cat <<X >y\nz\nX\n | bash:d"},
		{ParseMake, "X = 1\nY := $(X)2\na: b ; c\n\t@d $(Y) $$z $@\n\t$(", "bash:c\nd 12 $z ?\n?\n"},
		{ParseMake, "X += $(shell a $(shell b))\n", "bash:b | bash:a ?"},
		{ParseMake, "a:\n\tcd b; \\\n\tc $(HOME)\n", "bash:(cd b; \\\n\tc ${HOME}\n)\n"},
		{ParseBuildYAML, "run: a ${{ b }} c\ntest: [CMD, a]\nscript:\n- a\n- b\nx: {cmds: [{cmd: d}]}", "bash:a ? c | bash:'a' | bash:a\nb | bash:d"},
	} {
		assert.Equal(t, c.want, summary(c.parse(c.text, effect.NewBudget(10_000))), c.text)
	}
}

func TestEmbeddedTextStandsAtItsOffset(t *testing.T) {
	t.Parallel()

	text := "FROM a\nRUN --network=none b \\\n c\nCMD d\n"
	for _, e := range ParseDockerfile(text, effect.NewBudget(1000)).Embedded {
		assert.True(t, strings.HasPrefix(text[e.Offset:], e.Text.Text), e.Text.Text)
	}
}

// FuzzBuildFiles: no panic on any text, and spans within it.
func FuzzBuildFiles(f *testing.F) {
	for _, s := range []string{`{"scripts":{"a":"b"}}`, "RUN a \\\n b <<X\nc\nX\n", "a: ; b\n\t$(c) $(shell d)\ndefine e\nf\nendef\n", "run: |\n  a\ncommand: [b]\n", "a: &a [*a]",
		"[a]\nb = c \\\n d\n e\n", "[tool.x.scripts]\na = ['b', 'c']\n", "a := `b`\nc:\n  d {{a}}\n", "execute_process(COMMAND a [[b]] \"c\")", "sh '''a'''\n'b'.execute()\ninline: <<-X\nc\nX\n",
	} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []effect.Parser{ParsePackage, ParseDockerfile, ParseMake, ParseBuildYAML, ParseBuildTOML, ParseBuildJSON, ParseINI, ParseSSHConfig, ParseProcfile, ParseJust, ParseCMake, ParseGroovy, ParseVagrant} {
			for _, e := range parse(text, effect.NewBudget(10_000)).Embedded {
				if e.Span.Start < 0 || e.Span.End < e.Span.Start || e.Span.End > len(text) {
					t.Fatalf("span %v of a text of %d bytes", e.Span, len(text))
				}

				if e.Offset >= 0 && !strings.HasPrefix(text[e.Offset:], e.Text.Text) {
					t.Fatalf("%q is not at %d", e.Text.Text, e.Offset)
				}
			}
		}
	})
}
