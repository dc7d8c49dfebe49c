package policy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestImagesAreComparedAsRegistriesReadThem(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	for _, tt := range []struct {
		entry, asked string
		want         bool
	}{
		{"python:3.12-slim", "python:3.12-slim", true},
		{"python:3.12-slim", "docker.io/library/python:3.12-slim", true},
		{"docker.io/library/python:3.12-slim", "index.docker.io/python:3.12-slim", true},
		{"python:3.12-slim", "DOCKER.IO/library/python:3.12-slim", true},
		{"python:3.12-slim", "python:3.12", false},
		{"python:3.12-slim", "python", false},
		{"python:3.12-slim", "python:3.12-slim@" + digest, false},
		{"python:3.12-slim", "evil/python:3.12-slim", false},
		{"python:3.12-slim", "ghcr.io/library/python:3.12-slim", false},
		{"python:3.12-slim", "docker.io.evil.example/library/python:3.12-slim", false},
		{"python:3.12-slim", "docker.io:443/library/python:3.12-slim", false},
		{"python", "python:anything", true},
		{"python", "python@" + digest, true},
		{"python", "python", true},
		{"python", "pythons", false},
		{"python@" + digest, "python:3@" + digest, true},
		{"python@" + digest, "python:3", false},
		{"ghcr.io/acme/*", "ghcr.io/acme/base:1", true},
		{"ghcr.io/acme/*", "ghcr.io/acme/team/base", true},
		{"ghcr.io/acme/*", "ghcr.io/acmes/base", false},
		{"ghcr.io/acme/*", "acme/base", false},
		{"acme/*", "acme/base:2", true},
		{"acme/*", "base:2", false},
		{"localhost:5000/x", "localhost:5000/x:1", true},
		{"localhost:5000/x", "localhost:5001/x:1", false},
	} {
		b := Builds{Images: []string{tt.entry}}
		assert.NoError(t, b.Validate(), tt.entry)
		assert.Equal(t, tt.want, b.CheckImage(tt.asked) == nil, "%s for %s", tt.entry, tt.asked)
	}
}

func TestWhatIsNoImageIsRefused(t *testing.T) {
	all := Builds{Images: []string{"python", "x"}}
	for _, ref := range []string{"", " ", "python ", "Python", "python:", "python:a b", "python@sha256:12", "python@md5:" + strings.Repeat("a", 32), "../python", "http://python", "-x", "x\n", "python:$(id)", "python//x", "/python", "x/*"} {
		assert.Error(t, all.CheckImage(ref), "%q", ref)
	}
	for _, entry := range []string{"", "*", "p*", "ghcr.io/*/x", "a b", "UPPER"} {
		assert.Error(t, Builds{Images: []string{entry}}.Validate(), "%q", entry)
	}
	assert.Error(t, Builds{Templates: []string{"a*"}}.Validate())
	assert.Error(t, Builds{CPU: -1}.Validate())
}

func TestBuildsAreClosedUnlessTheyAreFromSomething(t *testing.T) {
	assert.False(t, Builds{CPU: 2}.Open())
	assert.Error(t, Builds{}.CheckTemplate("base"))
	assert.Error(t, Builds{}.CheckImage("python"))
	b := Builds{Templates: []string{"base"}}
	assert.True(t, b.Open())
	assert.NoError(t, b.CheckTemplate("Base:default"))
	assert.ErrorContains(t, b.CheckTemplate("team/base"), "option builds")
}
