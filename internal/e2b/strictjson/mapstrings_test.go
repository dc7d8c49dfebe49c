package strictjson

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMapStringsChangesValuesOnly(t *testing.T) {
	const text = `{"a":"x","x":[1.50,"x",{"b":"x","keep":"x"}],"c":null}`
	v, err := Decode([]byte(text))
	require.NoError(t, err)
	same, changed := MapStrings(v, func(_, s string) string { return s })
	assert.False(t, changed)
	assert.Equal(t, text, string(Encode(same)))
	other, changed := MapStrings(v, func(key, s string) string {
		if key == "keep" {
			return s
		}
		return strings.ToUpper(s)
	})
	assert.True(t, changed)
	assert.Equal(t, `{"a":"X","x":[1.50,"X",{"b":"X","keep":"x"}],"c":null}`, string(Encode(other)))
	top, changed := MapStrings("x", func(key, s string) string { return key + s + "y" })
	assert.True(t, changed)
	assert.Equal(t, "xy", top)
}
