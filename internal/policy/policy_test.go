package policy

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A timeout of 0 or below was accepted or misread as "never"
// (e2b-dev/infra PR 3419, e2b-dev/E2B#873).
func TestLifetimeNeverBecomesUnlimited(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	standard := Limits{LifetimeDefault: 5 * time.Minute, LifetimeMax: time.Hour}
	tests := map[string]struct {
		limits  Limits
		asked   *int64
		seconds int64
		changed bool
		err     string
	}{
		"missing":                            {standard, nil, 300, true, ""},
		"within the limit":                   {standard, n(60), 60, false, ""},
		"at the limit":                       {standard, n(3600), 3600, false, ""},
		"above the limit":                    {standard, n(3601), 3600, true, ""},
		"a day":                              {standard, n(86400), 3600, true, ""},
		"zero":                               {standard, n(0), 0, false, "at least 1 second"},
		"negative":                           {standard, n(-1), 0, false, "at least 1 second"},
		"largest E2B holds":                  {standard, n(math.MaxInt32), 3600, true, ""},
		"32-bit overflow":                    {standard, n(math.MaxInt32 + 1), 0, false, "more than E2B can hold"},
		"wraps to a small number in 32 bits": {standard, n(1<<32 + 5), 0, false, "more than E2B can hold"},
		"64-bit limit":                       {standard, n(math.MaxInt64), 0, false, "more than E2B can hold"},
		"default above the limit":            {Limits{LifetimeDefault: 2 * time.Hour, LifetimeMax: time.Hour}, nil, 3600, true, ""},
		"no default":                         {Limits{LifetimeMax: time.Hour}, nil, 3600, true, ""},
		"no limit at all":                    {Limits{}, nil, 0, false, ""},
		"no limit, asked":                    {Limits{}, n(86400), 86400, false, ""},
		"no limit, zero":                     {Limits{}, n(0), 0, false, "at least 1 second"},
		"a limit below a second":             {Limits{LifetimeMax: time.Millisecond}, n(60), 1, true, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			seconds, changed, err := tt.limits.Lifetime(tt.asked)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.seconds, seconds)
			assert.Equal(t, tt.changed, changed)
		})
	}
}

func TestPersistence(t *testing.T) {
	for words, want := range map[[4]string]Persistence{
		{"deny"}:                               {},
		{"allow", "pause"}:                     {Pause: true},
		{"allow", "fork", "snapshot"}:          {Snapshot: true, Fork: true},
		{"allow", "pause", "snapshot", "fork"}: {Pause: true, Snapshot: true, Fork: true},
	} {
		got, err := ParsePersistence(trim(words))
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for words, want := range map[[4]string]string{
		{}:                        "persistence takes",
		{"allow"}:                 "persistence takes",
		{"deny", "pause"}:         "persistence takes",
		{"pause"}:                 "persistence takes",
		{"allow", "all"}:          `does not know "all": write pause, snapshot or fork`,
		{"allow", "fork", "fork"}: "names fork twice",
	} {
		_, err := ParsePersistence(trim(words))
		require.ErrorContains(t, err, want)
	}
}

func trim(words [4]string) []string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

func TestTemplatesAreComparedAsE2BComparesThem(t *testing.T) {
	list, err := ParseTemplates([]string{"base", "Team/Image:v2"})
	require.NoError(t, err)
	for _, id := range []string{"base", " BASE ", "base:default", "team/image:v2"} {
		assert.NoError(t, list.Check(id), id)
	}
	for _, id := range []string{"", "base:v1", "team/base", "team/image", "bas", "base/../x", "team/image:v2:default2"} {
		err := list.Check(id)
		require.Error(t, err, id)
		assert.Contains(t, err.Error(), "base, Team/Image:v2")
	}
	assert.NoError(t, Templates{}.Check("anything"))
	for _, w := range []string{"", "a,b", "*", " ", "a b"} {
		_, err := ParseTemplates([]string{w})
		assert.ErrorContains(t, err, "is no template", "%q", w)
	}
}

func TestPorts(t *testing.T) {
	p, err := ParsePorts([]string{"3000", "8000-9000", "49000-65535"})
	require.NoError(t, err)
	for _, port := range []uint16{3000, 8000, 8887, 8889, 9000, 65535} {
		assert.NoError(t, p.Check(port), port)
	}
	for _, port := range []uint16{0, 1, 2999, 3001, 7999, 9001} {
		err := p.Check(port)
		require.Error(t, err, port)
		assert.Contains(t, err.Error(), "(3000, 8000-9000, 49000-65535)")
	}
	assert.ErrorContains(t, p.Check(8888), "Jupyter", "a range must not open the token-less Jupyter server")
	p, err = ParsePorts([]string{"8000-9000", "8888"})
	require.NoError(t, err)
	assert.NoError(t, p.Check(8888))
	assert.ErrorContains(t, Ports{}.Check(3000), "(none is)")

	for _, w := range []string{"", "0", "65536", "-1", "+1", "080", "x", "3000-", "-3000", "3000-3000", "3010-3000", "1-2-3", "http", "3000,3001", "1e3", "３０００"} {
		_, err := ParsePorts([]string{w})
		assert.ErrorContains(t, err, "is no port", "%q", w)
	}
	_, err = ParsePorts([]string{"49983"})
	assert.ErrorContains(t, err, "is envd")
	_, err = ParsePorts([]string{"3000", "3000"})
	assert.ErrorContains(t, err, "listed twice")
}
