package redact

import (
	"slices"
	"strings"
	"unicode"
)

// secretSegments are the words that make a variable's name the name of a secret,
// and secretSuffixes those that do even when written together with another word.
var (
	secretSegments = []string{
		"TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASS", "PASSPHRASE", "PWD", "PW",
		"KEY", "KEYS", "APIKEY", "CREDENTIAL", "CREDENTIALS", "CREDS", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE",
		"SIGNATURE", "DSN", "PAT", "JWT", "PIN", "OTP", "SALT",
	}
	secretSuffixes = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "ACCESSKEY", "PRIVATEKEY", "SECRETKEY", "CREDENTIALS"}
	// plainNames look like names of secrets and are not.
	plainNames = []string{"PWD", "OLDPWD", "SSH_AUTH_SOCK", "MAX_TOKENS", "TOKENIZERS_PARALLELISM"}
)

// SecretName reports whether an environment variable of this name probably holds
// a secret: API_KEY, GITHUB_TOKEN, dbPassword, DATABASE_URL. It errs on the side
// of yes.
func SecretName(name string) bool {
	parts := segments(name)
	joined := strings.Join(parts, "_")
	if slices.Contains(plainNames, joined) {
		return false
	}
	for _, part := range parts {
		if slices.Contains(secretSegments, part) {
			return true
		}
		for _, suffix := range secretSuffixes {
			if strings.HasSuffix(part, suffix) {
				return true
			}
		}
	}
	// URLs of databases and brokers carry a password more often than not.
	return strings.HasSuffix(joined, "DATABASE_URL") || strings.HasSuffix(joined, "DB_URL") ||
		strings.HasSuffix(joined, "REDIS_URL") || strings.HasSuffix(joined, "CONNECTION_STRING") ||
		strings.HasSuffix(joined, "WEBHOOK_URL") || strings.HasSuffix(joined, "MONGO_URI") || strings.HasSuffix(joined, "MONGODB_URI")
}

// segments are the words of a name, in upper case: of API_KEY, api-key, apiKey
// and APIKey2.
func segments(name string) []string {
	var parts []string
	var part []rune
	flush := func() {
		if len(part) > 0 {
			parts = append(parts, strings.ToUpper(string(part)))
			part = part[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && unicode.IsLower(runes[i-1]),
			unicode.IsUpper(r) && i > 0 && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
			flush()
		}
		part = append(part, r)
	}
	flush()
	return parts
}
