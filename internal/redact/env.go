package redact

import (
	"net/url"
	"slices"
	"strings"
)

// minDerived is the length from which the value of an environment variable is
// taken for a secret: a program's output is full of shorter words.
const minDerived = 8

// EnvSecrets are the secrets in an environment: the values of variables that are
// named like one, unless they are plainly something else (a path, a word, an
// address without a password), and what is found by pattern in the others. Of the
// address of a database, it is the password besides the whole.
func EnvSecrets(envs map[string]string) []Secret {
	var all []Secret
	for name, value := range envs {
		all = append(all, URLPasswords(value)...)
		if SecretName(name) && !plain(value) || wholePattern(value) {
			all = append(all, NewSecret(value))
		}
	}
	return all
}

// plain reports whether a value is no secret, whatever its name: hiding it would
// spoil ordinary output.
func plain(value string) bool {
	if len(value) < minDerived {
		return true
	}
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~/") {
		return true // Where a secret is.
	}
	if u, err := url.Parse(value); err == nil && u.Scheme != "" && u.Host != "" {
		_, password := u.User.Password()
		return !password && u.RawQuery == "" && len(u.Path) < 24 // The path of a webhook is its secret.
	}
	// One word, such as "postgres" or "disabled".
	return len(value) < 2*minDerived && !strings.ContainsFunc(value, func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' && r != '_' && r != ' ' })
}

// wholePattern reports whether a value is, whole, a secret of a known format.
func wholePattern(value string) bool {
	found := find(value)
	return len(found) == 1 && found[0].start == 0 && found[0].end == len(value)
}

// URLPasswords are the passwords and tokens in the addresses of a text, as in
// https://user:token@host/repository.git.
func URLPasswords(text string) []Secret {
	if !strings.Contains(text, "://") {
		return nil
	}
	var all []Secret
	for _, f := range find(text) {
		if patterns[f.pattern].kind == kindURLCredential && f.end-f.start >= minDerived {
			if value := text[f.start:f.end]; !slices.ContainsFunc(all, func(s Secret) bool { return s.Equal(value) }) {
				all = append(all, NewSecret(value))
			}
		}
	}
	return all
}
