package guard

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChunksOfAShortTextAreOne(t *testing.T) {
	assert.Equal(t, []Span{{0, 0}}, chunks("", 1024))
	assert.Equal(t, []Span{{0, 1024}}, chunks(strings.Repeat("a", 1024), 1024))
	assert.Len(t, chunks(strings.Repeat("a", 1025), 1024), 2)
}

// Chia1104/chia1104.dev PR 3010: chunks counted in characters overran a window of
// 512 tokens with Chinese text.
func TestChunksOfWideTextFitTheWindow(t *testing.T) {
	text := strings.Repeat("漢", 1500)
	spans := chunks(text, 512*4)
	require.Greater(t, len(spans), 2)
	for _, s := range spans {
		assert.LessOrEqual(t, utf8.RuneCountInString(text[s.Start:s.End]), 512)
	}
	checkChunks(t, text, 512*4)
}

func TestChunksCoverEverythingAndOverlap(t *testing.T) {
	for name, text := range map[string]string{
		"ascii":    strings.Repeat("0123456789", 5000),
		"two":      strings.Repeat("ß", 5000),
		"three":    strings.Repeat("a漢", 5000),
		"four":     strings.Repeat("🜲b", 5000),
		"mixed":    strings.Repeat("aß漢🜲\n", 3000),
		"invalid":  strings.Repeat("\xff\x80", 5000),
		"trailers": strings.Repeat("\x80", 5000),
		"broken":   strings.Repeat("a\xe6\xbc", 5000),
	} {
		t.Run(name, func(t *testing.T) { checkChunks(t, text, 1024) })
		t.Run(name+" 8000", func(t *testing.T) { checkChunks(t, text, 8000) })
	}
}

func checkChunks(t *testing.T, text string, window int) {
	t.Helper()
	spans := chunks(text, window)
	require.Zero(t, spans[0].Start)
	require.Equal(t, len(text), spans[len(spans)-1].End)
	for i, s := range spans {
		require.LessOrEqual(t, costOf(text[s.Start:s.End]), window)
		if utf8.ValidString(text) {
			require.True(t, utf8.ValidString(text[s.Start:s.End]), "a rune was cut in two")
		}
		if i == 0 {
			continue
		}
		require.Greater(t, s.Start, spans[i-1].Start, "progress")
		overlap := spans[i-1].End - s.Start
		if utf8.ValidString(text) {
			require.GreaterOrEqual(t, overlap, minOverlap)
		} else {
			require.Positive(t, overlap)
		}
	}
}

// superagent-ai/superagent chunkText: what lies across a cut was seen only in
// halves.
func FuzzChunks(f *testing.F) {
	f.Add("", 0)
	f.Add(strings.Repeat("a漢\xff", 900), 1300)
	f.Fuzz(func(t *testing.T, seed string, at int) {
		text := strings.Repeat(seed, 1+9000/(len(seed)+1))
		checkChunks(t, text, minChunk)
		if !utf8.ValidString(text) || at < 0 || at+minOverlap > len(text) {
			return
		}
		// Any 256 bytes lie whole within a chunk.
		for _, s := range chunks(text, minChunk) {
			if s.Start <= at && at+minOverlap <= s.End {
				return
			}
		}
		t.Fatalf("bytes %d to %d are in no chunk", at, at+minOverlap)
	})
}
