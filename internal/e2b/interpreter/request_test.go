package interpreter_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/interpreter"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

func TestDecodeExecute(t *testing.T) {
	e, r := interpreter.DecodeExecute(jsonHeader(), []byte(`{"code":"1+1","language":" JS ","env_vars":{"A":"b"},"later":{"x":1.50}}`))
	require.Nil(t, r)
	assert.Equal(t, "1+1", e.Code)
	assert.Equal(t, "javascript", e.Language)
	assert.Equal(t, map[string]string{"A": "b"}, e.EnvVars)
	body, err := e.Encode()
	require.NoError(t, err)
	assert.Equal(t, `{"code":"1+1","language":"javascript","env_vars":{"A":"b"},"later":{"x":1.50}}`, string(body))
}

// The server's JSON reader is Python's, which is far more lenient than any two
// readers would agree on.
func TestExecuteIsReadStrictly(t *testing.T) {
	for name, tt := range map[string]struct {
		body string
		h    http.Header
		code refusal.Code
	}{
		"duplicate key":           {body: `{"code":"ok","code":"evil"}`},
		"duplicate escaped key":   {body: `{"code":"ok","\u0063ode":"evil"}`},
		"only in another case":    {body: `{"Code":"evil"}`},
		"no code":                 {body: `{}`},
		"code not a string":       {body: `{"code":1}`},
		"code null":               {body: `{"code":null}`},
		"not an object":           {body: `["code"]`},
		"utf-8 mark":              {body: "\xef\xbb\xbf{\"code\":\"1\"}"},
		"utf-16":                  {body: "\xff\xfe{\x00\"\x00c\x00o\x00d\x00e\x00\"\x00:\x00\"\x001\x00\"\x00}\x00"},
		"utf-16 without mark":     {body: "{\x00\"\x00c\x00o\x00d\x00e\x00\"\x00:\x00\"\x001\x00\"\x00}\x00"},
		"utf-32":                  {body: "{\x00\x00\x00\"\x00\x00\x00"},
		"latin-1":                 {body: "{\"code\":\"\xe9\"}"},
		"lone surrogate":          {body: `{"code":"\ud800"}`},
		"not a number":            {body: `{"code":"1","x":NaN}`},
		"trailing data":           {body: `{"code":"1"}{"code":"2"}`},
		"empty":                   {},
		"context and language":    {body: `{"code":"1","context_id":"a","language":"python"}`},
		"context not a string":    {body: `{"code":"1","context_id":1}`},
		"language not a string":   {body: `{"code":"1","language":["bash"]}`},
		"language with a control": {body: `{"code":"1","language":"\u001cbash"}`},
		"language with a slash":   {body: `{"code":"1","language":"../x"}`},
		"blank language":          {body: `{"code":"1","language":"  "}`},
		"variables not an object": {body: `{"code":"1","env_vars":[]}`},
		"variable not a string":   {body: `{"code":"1","env_vars":{"A":1}}`},
		"text":                    {body: `{"code":"1"}`, h: http.Header{"Content-Type": {"text/plain"}}, code: refusal.CodeUnsupported},
		"form":                    {body: `{"code":"1"}`, h: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, code: refusal.CodeUnsupported},
		"json elsewhere":          {body: `{"code":"1"}`, h: http.Header{"Content-Type": {"text/json"}}, code: refusal.CodeUnsupported},
		"gzip":                    {body: `{"code":"1"}`, h: http.Header{"Content-Encoding": {"gzip"}}, code: refusal.CodeUnsupported},
		"two content types":       {body: `{"code":"1"}`, h: http.Header{"Content-Type": {"application/json", "text/plain"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.h == nil {
				tt.h = jsonHeader()
			}
			if tt.code == "" {
				tt.code = refusal.CodeInvalid
			}
			_, r := interpreter.DecodeExecute(tt.h, []byte(tt.body))
			require.NotNil(t, r)
			assert.Equal(t, tt.code, r.Code)
		})
	}
}

func TestExecuteContentTypesOfTheServer(t *testing.T) {
	for _, ct := range []string{"", "application/json", "Application/JSON; charset=latin-1", "application/x+json"} {
		h := http.Header{}
		if ct != "" {
			h.Set("Content-Type", ct)
		}
		_, r := interpreter.DecodeExecute(h, []byte(`{"code":"1","context_id":null,"language":null,"env_vars":null}`))
		require.Nil(t, r, ct)
		interpreter.CanonicalHeaders(h)
		assert.Equal(t, http.Header{"Content-Type": {"application/json"}}, h)
	}
}

func TestExecuteSubjects(t *testing.T) {
	subjects := func(body, context string) []guard.Subject {
		e, r := interpreter.DecodeExecute(jsonHeader(), []byte(body))
		require.Nil(t, r)
		s, r := e.Subjects(context)
		require.Nil(t, r)
		return s
	}
	code := func(language, target string) []guard.Subject {
		return []guard.Subject{{Kind: guard.KindCode, Language: language, Text: "x", Target: target}}
	}
	assert.Equal(t, code("python", ""), subjects(`{"code":"x"}`, ""))
	assert.Equal(t, code("bash", ""), subjects(`{"code":"x","language":"BASH"}`, ""))
	assert.Equal(t, code("typescript", ""), subjects(`{"code":"x","language":"ts"}`, "r"))
	assert.Equal(t, code("r", "c1"), subjects(`{"code":"x","context_id":"c1"}`, "r"))
	assert.Equal(t, code("", "c1"), subjects(`{"code":"x","context_id":"c1"}`, ""))

	withEnv := subjects(`{"code":"x","env_vars":{"B":"1","BASH_ENV":"/tmp/x"}}`, "")
	require.Len(t, withEnv, 2)
	assert.Equal(t, "/tmp/x", withEnv[1].Text)
	for _, s := range withEnv {
		assert.Equal(t, "B,BASH_ENV", s.Labels[guard.LabelEnvNames])
	}
}

// Variables are pasted into source code unescaped by the server.
func TestVariablesThatBecomeCodeAreRefused(t *testing.T) {
	for _, vars := range []string{
		`{"A":"x'; __import__('os').system('id'); y='"}`, `{"A'] = ''; import os #":"x"}`, `{"A":"a\nimport os"}`, `{"A":"\\"}`, `{"A":"\""}`,
	} {
		e, r := interpreter.DecodeExecute(jsonHeader(), []byte(`{"code":"1","env_vars":`+vars+`}`))
		require.Nil(t, r)
		_, r = e.Subjects("")
		require.NotNil(t, r, vars)
		assert.Equal(t, refusal.CodePolicy, r.Code)
		assert.NotContains(t, r.Reason, "__import__", "a value is not repeated")
	}
}

func TestDecodeContext(t *testing.T) {
	c, r := interpreter.DecodeContext(jsonHeader(), []byte(`{"language":"JS","cwd":"/home/user/Über uns (1)","later":true}`))
	require.Nil(t, r)
	assert.Equal(t, "javascript", c.Language)
	body, err := c.Encode()
	require.NoError(t, err)
	assert.Equal(t, `{"language":"javascript","cwd":"/home/user/Über uns (1)","later":true}`, string(body))
	s, r := c.Subjects()
	require.Nil(t, r)
	require.Len(t, s, 1)
	assert.Equal(t, "/home/user/Über uns (1)", s[0].Target)

	c, r = interpreter.DecodeContext(jsonHeader(), []byte(`{}`))
	require.Nil(t, r)
	assert.Equal(t, "python", c.Language)
	s, r = c.Subjects()
	require.Nil(t, r)
	assert.Empty(t, s)
}

// cwd is pasted into "%cd …", "process.chdir('…')", "setwd('…')", a Java string
// and "cd '…'"; IPython also ends a line at every Unicode line break and expands
// $ and {}.
func TestContextFolderThatBecomesCodeIsRefused(t *testing.T) {
	for _, cwd := range []string{
		`/tmp\nimport os`, `/tmp\rx`, `/tmp\u000bx`, `/tmp\u000cx`, `/tmp\u001cx`, `/tmp\u0085x`, `/tmp\u2028x`, `/tmp\u2029x`, `/tmp\u0000`,
		`/tmp'); evil('`, `/tmp\"); evil(\"`, `/tmp\\`, "/tmp`id`", `$(id)`, `{__import__('os')}`, `{x}`, `/tmp;x`, `/tmp|x`, `-b`, `/tmp?`, `!id`, `/tmp<x`,
	} {
		_, r := interpreter.DecodeContext(jsonHeader(), []byte(`{"cwd":"`+cwd+`"}`))
		require.NotNil(t, r, cwd)
		assert.Equal(t, refusal.CodePolicy, r.Code, "%s: %s", cwd, r.Reason)
	}
	_, r := interpreter.DecodeContext(jsonHeader(), []byte(`{"cwd":1}`))
	require.NotNil(t, r)
	assert.Equal(t, refusal.CodeInvalid, r.Code)
}

func TestContexts(t *testing.T) {
	got, err := interpreter.Contexts([]byte(`{"id":"a","language":"r","cwd":"/"}`))
	require.NoError(t, err)
	assert.Equal(t, map[string]interpreter.Context{"a": {Language: "r", Cwd: "/"}}, got)
	got, err = interpreter.Contexts([]byte(`[{"id":"a","language":"r"},{"id":"b","language":"bash"}]`))
	require.NoError(t, err)
	assert.Equal(t, map[string]interpreter.Context{"a": {Language: "r"}, "b": {Language: "bash"}}, got)
	for _, bad := range []string{``, `"x"`, `[1]`, `{"id":1,"language":"r"}`, `{"id":"a"}`} {
		_, err := interpreter.Contexts([]byte(bad))
		require.Error(t, err, bad)
	}
}
