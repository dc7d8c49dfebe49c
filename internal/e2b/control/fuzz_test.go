package control

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/policy"
)

// newSandbox is how E2B's API decodes create: encoding/json, keys in any case.
type newSandbox struct {
	TemplateID          string             `json:"templateID"`
	Timeout             *int32             `json:"timeout,omitempty"`
	AutoPause           *bool              `json:"autoPause,omitempty"`
	AutoResume          *autoResume        `json:"autoResume,omitempty"`
	Secure              *bool              `json:"secure,omitempty"`
	AllowInternetAccess *bool              `json:"allow_internet_access,omitempty"`
	Network             *sandboxNetwork    `json:"network,omitempty"`
	EnvVars             *map[string]string `json:"envVars,omitempty"`
	Metadata            *map[string]string `json:"metadata,omitempty"`
	Mcp                 *map[string]any    `json:"mcp"`
	Iam                 *map[string]any    `json:"iam,omitempty"`
	VolumeMounts        *[]any             `json:"volumeMounts,omitempty"`
}

type autoResume struct {
	Enabled bool `json:"enabled"`
}

type sandboxNetwork struct {
	AllowOut           *[]string       `json:"allowOut,omitempty"`
	DenyOut            *[]string       `json:"denyOut,omitempty"`
	AllowPublicTraffic *bool           `json:"allowPublicTraffic,omitempty"`
	EgressProxy        *map[string]any `json:"egressProxy,omitempty"`
	Rules              *map[string]any `json:"rules,omitempty"`
	MaskRequestHost    *string         `json:"maskRequestHost,omitempty"`
}

// FuzzCreate checks that what E2B reads from the body we forward is what was
// enforced, whatever the client sent.
func FuzzCreate(f *testing.F) {
	for _, s := range []string{
		`{"templateID":"base"}`,
		`{"templateID":"base","timeout":300,"secure":true,"allow_internet_access":true}`,
		`{"templateID":"base","TIMEOUT":99999,"timeout":5}`,
		`{"templateID":"base","network":{"allowOut":["pypi.org"],"denyOut":["0.0.0.0/0"],"allowPublicTraffic":true}}`,
		`{"templateID":"base","autoPause":true,"autoResume":{"enabled":true}}`,
		`{"templateID":"base","envVars":{"A":"b"},"metadata":{"k":"v"},"futureThing":[1,{}]}`,
		`{"templateID":"base","mcp":{},"iam":null,"volumeMounts":[]}`,
		`{"templateID":"base","\u0074imeout":86400}`,
		`{"templateID":"base","envVarſ":{"BASH_ENV":"x"}}`,
	} {
		f.Add([]byte(s))
	}
	p := with(func(p *policy.Policy) { p.Network = policy.Network{Allow: []string{"pypi.org"}} })
	v1, v2 := target(f, create), target(f, create2)
	f.Fuzz(func(t *testing.T, body []byte) {
		for generation, target := range map[int]struct{ secure bool }{1: {true}, 2: {false}} {
			to := v1
			if generation == 2 {
				to = v2
			}
			m, ref := Decode(to, body)
			if ref != nil {
				continue
			}
			if _, ref := m.Enforce(p); ref != nil {
				continue
			}
			var got newSandbox
			require.NoError(t, json.Unmarshal(m.Encode(), &got), "E2B must be able to read what we forward")
			require.NotEmpty(t, got.TemplateID)
			require.NotNil(t, got.Timeout)
			require.True(t, *got.Timeout >= 1 && *got.Timeout <= 3600)
			require.True(t, got.AutoPause == nil || !*got.AutoPause)
			require.True(t, got.AutoResume == nil || !got.AutoResume.Enabled)
			if target.secure {
				require.True(t, got.Secure != nil && *got.Secure)
			}
			require.True(t, got.Secure == nil || *got.Secure)
			require.False(t, *got.AllowInternetAccess)
			require.False(t, *got.Network.AllowPublicTraffic)
			require.Equal(t, []string{"0.0.0.0/0"}, *got.Network.DenyOut)
			if got.Network.AllowOut != nil {
				require.Equal(t, []string{"pypi.org"}, *got.Network.AllowOut)
			}
			require.True(t, got.Network.EgressProxy == nil || len(*got.Network.EgressProxy) == 0)
			require.True(t, got.Network.Rules == nil || len(*got.Network.Rules) == 0)
			require.True(t, got.Network.MaskRequestHost == nil || *got.Network.MaskRequestHost == "")
			require.True(t, got.Mcp == nil || len(*got.Mcp) == 0)
			require.True(t, got.Iam == nil || len(*got.Iam) == 0)
			require.True(t, got.VolumeMounts == nil || len(*got.VolumeMounts) == 0)
			vars := m.(*message).envVars()
			if got.EnvVars == nil {
				require.Empty(t, vars)
			} else {
				require.Equal(t, len(*got.EnvVars), len(vars))
				for k, v := range *got.EnvVars {
					require.Equal(t, v, vars[k])
				}
			}
		}
	})
}
