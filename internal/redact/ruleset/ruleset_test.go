package ruleset

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The keys are made up, and put together here so that no scanner takes them for
// real ones.
func TestSecretsOfKnownFormAreMasked(t *testing.T) {
	rules, err := Load()
	require.NoError(t, err)
	for name, secret := range map[string]string{
		"GitLab":   "glpat-" + "8Wq3xT5zLm7RvN2bKc9P",
		"Stripe":   "sk_live_" + "9aVq2Lx7Zt4Rm8Wc3Ny6Pb1K",
		"npm":      "npm_" + "x7Kq2mZt9Rw4Lc8Vn3Bp6Yd1Hs5Jf0Gaq2mZ",
		"SendGrid": "SG." + "k3Vt9Lx2Qm7Rw4Zc8Np1Yb" + "." + "a7Kq2mZt9Rw4Lc8Vn3Bp6Yd1Hs5Jf0GaeTu4Wi8Xo2C",
		"Age":      "AGE-SECRET-KEY-1" + strings.Repeat("QPZRY9X8GF", 6)[:58],
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{"key = \"" + secret + "\"\nprint(key)", "export K=" + secret + " # gitleaks:allow\n"} {
				got := rules.Mask(text)
				assert.NotContains(t, got, secret)
				assert.Contains(t, got, "<secret:")
			}
		})
	}
}

func TestOrdinaryTextStaysAsItIs(t *testing.T) {
	rules, err := Load()
	require.NoError(t, err)
	for _, text := range []string{
		"", "ls -la /home/user", "import os\nprint(os.environ['API_KEY'])", "token = get_token()\npassword = input('password: ')",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "pip install requests==2.32.3",
	} {
		assert.Equal(t, text, rules.Mask(text))
	}
}

func TestRulesMayBeSharedByCalls(t *testing.T) {
	rules, err := Load()
	require.NoError(t, err)
	secret := "glpat-" + "8Wq3xT5zLm7RvN2bKc9P"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				assert.NotContains(t, rules.Mask("token: "+secret), secret)
			}
		})
	}
	wg.Wait()
}

func BenchmarkMask(b *testing.B) {
	rules, err := Load()
	require.NoError(b, err)
	for name, text := range map[string]string{
		"line":   "ls -la /tmp && echo done",
		"4KiB":   strings.Repeat("import os\nprint(os.getcwd())\nfor i in range(10): pass\n", 80),
		"dense":  strings.Repeat("api_key = load()\npassword = x['secret']\n", 100),
		"secret": "token: glpat-" + "8Wq3xT5zLm7RvN2bKc9P",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				rules.Mask(text)
			}
		})
	}
}
