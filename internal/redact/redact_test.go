package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const credential = "sk-live-4242hunter"

// caddyserver/caddy#5669: a redacted value that prints as nothing looks like one
// that was never set.
func TestSecretTellsRedactedFromUnset(t *testing.T) {
	assert.Equal(t, "[redacted len=18 sha256="+NewSecret(credential).Fingerprint()+"]", NewSecret(credential).String())
	assert.Equal(t, "[unset]", Secret{}.String())
	assert.True(t, Secret{}.IsZero())
	assert.False(t, NewSecret(credential).IsZero())
	assert.Len(t, NewSecret(credential).Fingerprint(), 8)
	assert.NotEqual(t, NewSecret("a").Fingerprint(), NewSecret("b").Fingerprint())
}

func TestSecretPrintsItselfWithNoVerb(t *testing.T) {
	s := NewSecret(credential)
	holder := struct {
		Key Secret
		Ptr *Secret
		Map map[string]Secret
		own Secret
	}{s, &s, map[string]Secret{"k": s}, s}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v", "%t", "%e", "%U", "%c", "%o", "%b", "%p", "%w"} {
		for _, value := range []any{s, &s, holder, &holder, []Secret{s}, []any{s}, map[string]any{"k": s}} {
			out := fmt.Sprintf(verb, value, value)
			assert.NotContains(t, out, credential, verb)
			assert.NotContains(t, out, fmt.Sprintf("%x", credential), verb)
		}
	}
	assert.Equal(t, s.String(), fmt.Sprintf("%#v", s))
	assert.NotContains(t, fmt.Errorf("using %v: %w", s, errors.New("no")).Error(), credential)
}

func TestSecretEncodesItselfRedacted(t *testing.T) {
	s := NewSecret(credential)
	encoded, err := json.Marshal(map[string]any{"value": s, "pointer": &s, "list": []Secret{s}})
	require.NoError(t, err)
	assert.NotContains(t, string(encoded), credential)
	assert.Contains(t, string(encoded), s.String())

	asKey, err := json.Marshal(map[Secret]int{s: 1})
	require.NoError(t, err)
	assert.NotContains(t, string(asKey), credential)

	text, err := s.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, s.String(), string(text))
}

func TestSecretLogsItselfRedacted(t *testing.T) {
	s := NewSecret(credential)
	for name, encoder := range map[string]zapcore.Encoder{
		"json":    zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()),
		"console": zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger := zap.New(zapcore.NewCore(encoder, zapcore.AddSync(&out), zap.DebugLevel))
			logger.Info("with fields", zap.Any("any", s), zap.Any("pointer", &s), zap.Stringer("stringer", s),
				zap.Reflect("reflect", struct{ Key Secret }{s}), zap.Any("list", []Secret{s}))
			logger.Sugar().Infow("sugar", "key", s)
			logger.Sugar().Infof("%v %s %+v", s, s, s)
			assert.NotContains(t, out.String(), credential)
			assert.Contains(t, out.String(), s.Fingerprint())
		})
	}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("slog", "key", s)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("slog", "key", s)
	assert.NotContains(t, out.String(), credential)
}

func TestSecretEqual(t *testing.T) {
	s := NewSecret(credential)
	assert.True(t, s.Equal(credential))
	assert.False(t, s.Equal(credential+"x"))
	assert.False(t, s.Equal(""))
	assert.True(t, Secret{}.Equal(""))
	assert.Equal(t, credential, s.Reveal())
}

func TestSecretName(t *testing.T) {
	for _, name := range []string{
		"API_KEY", "E2B_API_KEY", "GITHUB_TOKEN", "githubToken", "GITHUBTOKEN", "db-password", "dbPassword", "DBPASSWORD", "PGPASSWORD",
		"AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "client_secret", "ClientSecret2", "STRIPE_SK_KEY", "apikey", "APIKey", "x-api-key",
		"SMTP_PASS", "MYSQL_PWD", "NPM_AUTH", "GOOGLE_APPLICATION_CREDENTIALS", "DATABASE_URL", "CELERY_REDIS_URL", "SENTRY_DSN", "SESSION_COOKIE",
		"SLACK_WEBHOOK_URL", "JWT",
	} {
		assert.True(t, SecretName(name), name)
	}
	for _, name := range []string{
		"", "PATH", "HOME", "PWD", "OLDPWD", "LANG", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "SSH_AUTH_SOCK", "AUTHOR",
		"PASSENGER", "COMPASS", "PYTHONPATH", "NODE_ENV", "URL", "BASE_URL", "PATTERN", "SPIN",
	} {
		assert.False(t, SecretName(name), name)
	}
}
