package pty

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxDefinitions bounds the earlier lines that give later ones a meaning. No
	// line is judged without all of them.
	maxDefinitions = 32 << 10
	// recentLines of the others are kept too, for what they say together.
	recentLines = 24
	maxRecent   = 4 << 10
	// maxPending bounds a command that is typed over several lines.
	maxPending = 64 << 10
)

// earlier is what was run in the shell before: it is part of what a line means.
// Every line in it is complete, so that none hides the one that follows.
type earlier struct {
	definitions string
	recent      []string
}

// definition tells lines that later ones may depend on.
var definition = regexp.MustCompile(`=|\(\)|<<|>|\b(function|alias|unalias|read|printf -v|mapfile|readarray|declare|typeset|local|export|for|select|getopts|set|source|eval|trap|cd|pushd|shopt|hash|ln|cp|mv|coproc)\b|(^|[;&|]\s*)\.\s`)

// add notes a command that is about to run. It reports whether there was room.
func (c *earlier) add(command string) bool {
	if definition.MatchString(command) {
		if len(c.definitions)+len(command) >= maxDefinitions {
			return false
		}
		c.definitions += command + "\n"
		return true
	}
	if len(command) > maxRecent {
		return true
	}
	c.recent = append(c.recent[max(0, len(c.recent)-recentLines+1):len(c.recent):len(c.recent)], command)
	return true
}

func (c *earlier) text() string {
	recent := strings.Join(c.recent, "\n")
	if len(recent) > maxRecent {
		recent = recent[len(recent)-maxRecent:]
		_, recent, _ = strings.Cut(recent, "\n")
	}
	if recent != "" {
		recent += "\n"
	}
	return c.definitions + recent
}

// completeness is what a shell does with text at the end of a line.
type completeness uint8

const (
	complete   completeness = iota
	incomplete              // asks for more
	invalid                 // gives it up
)

// completenessOf tells whether a shell would run the text, or wait for more of it.
func completenessOf(text string) completeness {
	if trimmed := strings.TrimRight(text, `\`); (len(text)-len(trimmed))%2 == 1 {
		return incomplete
	}
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text+"\n"), "")
	switch {
	case err == nil:
		return complete
	case syntax.IsIncomplete(err) || strings.Contains(err.Error(), "here-document"):
		return incomplete
	}
	return invalid
}
