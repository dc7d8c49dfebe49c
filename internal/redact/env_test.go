package redact

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEnvSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		name, value string
		want        []string
	}{
		"named so":                   {"OPENAI_API_KEY", "abc123def456", []string{"abc123def456"}},
		"looks so":                   {"FOO", "ghp_" + digits[:36], []string{"ghp_" + digits[:36]}},
		"a long word":                {"DB_PASSWORD", "correcthorsebatterystaple", []string{"correcthorsebatterystaple"}},
		"two words":                  {"PASSPHRASE", "Tr0ub4dor and three", []string{"Tr0ub4dor and three"}},
		"password of a database":     {"DATABASE_URL", "postgres://app:hunter2hunter2@db:5432/x", []string{"hunter2hunter2", "postgres://app:hunter2hunter2@db:5432/x"}},
		"password under a free name": {"UPSTREAM", "https://bot:0123456789abcdef@git.test/x.git", []string{"0123456789abcdef"}},
		"webhook":                    {"WEBHOOK_URL", "https://hooks.test/services/T0000/B0000/abcdefgh", []string{"https://hooks.test/services/T0000/B0000/abcdefgh"}},
		"not named so":               {"GREETING", "hello world 12", nil},
		"a common word":              {"DB_PASSWORD", "postgres", nil},
		"short":                      {"PIN", "1234567", nil},
		"a path":                     {"SSH_KEY", "/home/user/.ssh/id_ed25519", nil},
		"an address":                 {"AUTH_URL", "https://login.example.com/", nil},
		"the working directory":      {"PWD", "/home/user/project1", nil},
	} {
		var got []string
		for _, s := range EnvSecrets(map[string]string{c.name: c.value}) {
			got = append(got, s.Reveal())
		}
		slices.Sort(got)
		assert.Equal(t, c.want, got, name)
	}
}
