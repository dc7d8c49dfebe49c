package static

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// fileSamplesOf reads the samples of testdata/samples: texts of several lines,
// each after a line "=== block RULE LANGUAGE" or "=== pass RULE LANGUAGE".
var fileSamplesOf = sync.OnceValue(func() []sample {
	var out []sample

	paths, err := filepath.Glob("testdata/samples/*.txt")
	if err != nil || len(paths) == 0 {
		panic("no samples in testdata/samples")
	}

	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}

		for part := range strings.SplitSeq("\n"+string(text), "\n=== ") {
			head, body, _ := strings.Cut(part, "\n")

			words := strings.Fields(head)
			if len(words) == 0 {
				continue
			}

			if len(words) != 3 || words[0] != "block" && words[0] != "pass" {
				panic(path + ": what is \"" + head + "\"?")
			}

			s := sampleOf(&out, words[1], words[2])
			if body = strings.TrimRight(body, "\n"); words[0] == "block" {
				s.block = append(s.block, body)
			} else {
				s.pass = append(s.pass, body)
			}
		}
	}

	return out
})

// sampleOf is the samples of a rule in a language, made if there are none.
func sampleOf(all *[]sample, rule, lang string) *sample {
	for i := range *all {
		if s := &(*all)[i]; s.rule == rule && s.lang == lang {
			return s
		}
	}

	*all = append(*all, sample{rule: rule, lang: lang})

	return &(*all)[len(*all)-1]
}
