package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/redact"
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("audit.json", doc))
	s, err := c.Compile("audit.json")
	require.NoError(t, err)
	return s
}

// everything is a log with every kind of record, and with every member set.
func everything(t *testing.T) string {
	t.Helper()
	key, err := NewKey(redact.NewSecret(strings.Repeat("k", 32)))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(path, Options{RotateBytes: 3 << 10, KeepFiles: 1, Key: key})
	texts := Texts{Code: CodeHead, Head: 10, Output: 10, Masker: redact.NewMasker()}
	out := texts.NewCapture()
	_, _ = out.Write(bytes.Repeat([]byte("line\n\xff"), 10_000))
	out.Miss(5)
	code := int32(-1)
	verdict := guard.Verdict{Decision: guard.Block, Reasoning: "bad", Guard: "static", Cached: true, Took: time.Millisecond,
		Violations: []guard.Violation{{Type: "t", CWE: "CWE-1", Rule: "r", Span: guard.Span{Start: 1, End: 2}}}}
	subject := guard.Subject{Kind: guard.KindFile, Language: "python", Text: strings.Repeat("secret sk-ant-api03-0123456789abcdefghij", 200), Target: "/a.py",
		Labels: map[string]string{guard.LabelAction: "write", guard.LabelCwd: "/", guard.LabelClient: "not twice"}}
	judged := texts.Subject(subject, guard.Decide(verdict, nil, guard.Mode{Shadow: true}))
	failed := texts.Subject(guard.Subject{Kind: guard.KindCommand, Text: "ls"}, guard.Decide(guard.Verdict{}, errors.New("no answer"), guard.Mode{AllowOnError: true}))
	open := texts.Subject(guard.Subject{Kind: guard.KindCommand, Text: "ls"}, guard.Decide(guard.Verdict{},
		&guard.Error{Fault: guard.Unreachable, Err: errors.New("no answer")}, guard.Mode{AllowOnError: true}))
	call := &Call{Trace: strings.Repeat("a", 32), Client: "team-a", Sandbox: "sbx", Volume: "vol", Plane: "envd", Operation: "process.start"}
	l.Missed()
	for range 4 {
		require.NoError(t, l.Append(context.Background(), Record{Kind: KindDecision, ID: "a", Call: call, Decision: &Decision{
			Decision: "block", Code: "policy", Reason: "r", Cause: "c", Mode: "shadow", WouldBlock: true, Policy: "p", Late: true, Took: 1,
			Subjects: []Subject{judged, failed, open}, Changed: []Change{{"wall_clock", "20s"}},
		}}))
		l.Note(Record{Kind: KindOutcome, ID: "a", Call: call, Outcome: &Outcome{
			Ended: EndedLimit, Status: 200, ExitCode: &code, Error: "e", Stdout: texts.Captured(out), Stderr: texts.Captured(out), PTY: texts.Captured(out),
			OutputGap: true, Wall: 1, KilledBy: "output_limit", DestroyedBy: "client",
		}})
		l.Note(Record{Kind: KindTeardown, Call: &Call{Sandbox: "sbx"}, Outcome: &Outcome{Ended: EndedComplete, DestroyedBy: "reaper"}})
	}
	require.NoError(t, l.Close())

	// A start behind a kill, a torn record and a cut; a checkpoint.
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1], "{torn"...), 0o600))
	l = New(path, Options{Key: key})
	require.NoError(t, l.Start(context.Background()))
	l.checkpoint()
	require.NoError(t, l.Close())
	b, err = os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(b, "damage\n"...), 0o600))
	l = New(path, Options{})
	l.Missed()
	require.NoError(t, l.Start(context.Background()))
	require.NoError(t, l.Close())
	return path
}

func TestEveryRecordIsOfTheSchema(t *testing.T) {
	s := schema(t)
	path := everything(t)
	files := append(filesOf(t, path), path)
	aside, err := filepath.Glob(path + ".damaged-*")
	require.NoError(t, err)
	members, kinds := map[string]bool{}, map[Kind]bool{}
	for _, file := range append(files, aside...) {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range bytes.Lines(b) {
			if string(line) == "damage\n" {
				continue
			}
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
			require.NoError(t, err)
			require.NoError(t, s.Validate(v), "%s", line)
			var r Record
			require.NoError(t, json.Unmarshal(line, &r))
			kinds[r.Kind] = true
			for name := range v.(map[string]any) {
				members[name] = true
			}
		}
	}
	for _, kind := range []Kind{KindDecision, KindOutcome, KindTeardown, KindOpen, KindClose, KindCheckpoint, KindLost, KindRemoved} {
		assert.True(t, kinds[kind], "the test has no %s", kind)
	}
	for _, name := range jsonNames(reflect.TypeFor[Record]()) {
		assert.True(t, members[name], "the test has no record with %s", name)
	}
}

// The schema names what there is and nothing else.
func TestSchemaNamesTheMembersOfARecord(t *testing.T) {
	var doc struct {
		Properties map[string]any `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(Schema, &doc))
	var named []string
	for name := range doc.Properties {
		named = append(named, name)
	}
	assert.ElementsMatch(t, jsonNames(reflect.TypeFor[Record]()), named)
}

func jsonNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			names = append(names, jsonNames(f.Type.Elem())...)
		} else {
			names = append(names, name)
		}
	}
	return names
}

func TestSchemaNamesTheGuardsKinds(t *testing.T) {
	var doc struct {
		Defs struct {
			Subject struct {
				Properties struct {
					Kind struct {
						Enum []guard.Kind `json:"enum"`
					} `json:"kind"`
				} `json:"properties"`
			} `json:"subject"`
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(Schema, &doc))
	assert.Equal(t, guard.Kinds(), doc.Defs.Subject.Properties.Kind.Enum)
}
