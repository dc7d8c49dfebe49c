package place

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWords(t *testing.T) {
	t.Parallel()

	s := NewWords("pool", "po", "xmr", "")

	assert.True(t, s.In("a.xmr"))
	assert.True(t, s.In("xpool"))
	assert.False(t, s.In("x.mr.p"))
	assert.False(t, s.In(""))
	assert.True(t, s.Begin("poodle"))
	assert.False(t, s.Begin("apo"))
	assert.False(t, s.Begin(""))
}
