package effect

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestValues(t *testing.T) {
	t.Parallel()

	v := Concat(Const("a"), Value{Text: HoleText, Taint: TaintEnv, Origin: "X", Ref: "x"}, Unknown(TaintFile), Const("b"))
	assert.Equal(t, "a"+HoleText+"b", v.Text)
	assert.True(t, v.Has(TaintEnv))
	assert.True(t, v.Has(TaintFile))
	assert.Equal(t, "X", v.Origin)
	assert.Equal(t, "a", v.Prefix())
	assert.False(t, v.IsConst())
	assert.False(t, v.IsUnknown())
	assert.Equal(t, "$x", v.Key())

	assert.True(t, Value{}.IsEmpty())
	assert.True(t, Unknown(0).IsUnknown())
	assert.Empty(t, Unknown(0).Key())
	assert.Equal(t, "a", Const("a").Key())
	assert.Equal(t, "file, env", (TaintEnv | TaintFile).String())
}

func TestConcatIsBounded(t *testing.T) {
	t.Parallel()

	half := Const(strings.Repeat("x", MaxText/2+1))
	assert.True(t, Concat(half, half).IsUnknown())
}

func TestMerge(t *testing.T) {
	t.Parallel()

	assert.Equal(t, Const("a"), Merge(Const("a"), Const("a")))
	assert.True(t, Merge(Const("a"), Const("b")).IsUnknown())
	assert.True(t, Merge(Const("a"), Const("b").With(TaintInput)).Has(TaintInput))
}

func TestOriginsAreUniqueAndBounded(t *testing.T) {
	t.Parallel()

	v := Value{}
	for _, o := range strings.Split("a b a c d e f g h i j", " ") {
		v = v.From(TaintFile, o)
	}

	assert.Equal(t, []string{"a", "b", "c", "d", "e", "f", "g", "h"}, v.Origins())
	assert.Nil(t, Value{}.Origins())
}

func TestKindsHaveNames(t *testing.T) {
	t.Parallel()

	for k := Exec; k <= Load; k++ {
		assert.NotEqual(t, "invalid", k.String())
	}

	assert.Equal(t, "invalid", Kind(0).String())
	assert.Equal(t, "invalid", Kind(255).String())
}

func TestBudget(t *testing.T) {
	t.Parallel()

	b := NewBudget(2)
	assert.True(t, b.Spend(2))
	assert.False(t, b.Exhausted())
	assert.False(t, b.Spend(1))
	assert.False(t, b.Spend(0))
	assert.True(t, b.Exhausted())
	assert.Equal(t, 3, b.Spent())
}
