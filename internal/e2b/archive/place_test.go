package archive

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Source: doublestar.SplitPattern, with which E2B's builder finds what to move.
func TestTheSourceEndsBeforeTheFirstWildcard(t *testing.T) {
	for pattern, want := range map[string]string{
		"app": "app", "app/": "app", "./app": "app", ".": ".", "./": ".", "a/b/c": "a/b/c", "a//b": "a/b", "a/../b": "b",
		"*": ".", "*.py": ".", "**/*.js": ".", "app/*.py": "app", "app/x*": "app", "a/b/{c,d}/e": "a/b", "a/[bc]": "a", "a?/b": ".", "a/b?": "a",
	} {
		assert.Equal(t, want, Source(pattern), pattern)
	}
}

func TestWhereACopyPutsFiles(t *testing.T) {
	tree := []header{folder("a/"), file("a/x", "1"), file("a/d/y", "2"), symlink("a/l", "d"), symlink("a/d/m", "../x"), symlink("a/self", "."), symlink("a/loop", "loop"), symlink("a/none", "gone")}
	for name, tt := range map[string]struct {
		files               []header
		source, destination string
		want, links         []string
	}{
		"a folder":             {[]header{folder("a/"), file("a/x", ""), file("a/d/y", "")}, "a", "/srv", []string{"/srv/x", "/srv/d/y"}, nil},
		"with a slash":         {[]header{file("a/x", "")}, "a", "/srv/", []string{"/srv/x"}, nil},
		"all":                  {[]header{folder("./"), file("a/x", ""), file("y", "")}, ".", "/srv", []string{"/srv/a/x", "/srv/y"}, nil},
		"to the root":          {[]header{file("a/x", "")}, "a", "/", []string{"/x"}, nil},
		"a file":               {[]header{file("x", "")}, "x", "/srv/y", []string{"/srv/y", "/srv/y/x"}, nil},
		"a file into a folder": {[]header{file("d/x", "")}, "d/x", "/srv/", []string{"/srv/x"}, nil},
		"a file to nowhere":    {[]header{file("x", "")}, "x", "y", []string{"y", "y/x"}, nil},
		"a file here":          {[]header{file("x", "")}, "x", ".", []string{"x"}, nil},
		"folders beside it":    {[]header{folder("b/"), folder("a/"), file("a/x", "")}, "a", "/srv", []string{"/srv/x"}, nil},
		"links": {tree, "a", "/srv", []string{
			"/srv/x", "/srv/d/y", "/srv/l/y", "/srv/d/m", "/srv/self/d/y", "/srv/self/x",
		}, []string{"/srv/l", "/srv/d/m", "/srv/self", "/srv/loop", "/srv/none"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, entries, err := rewrite(pack(t, tt.files...), testLimits)
			require.NoError(t, err)
			placed, links, err := Place(entries, tt.source, tt.destination)
			require.NoError(t, err)
			var got []string
			for _, p := range placed {
				got = append(got, p.Path)
			}
			assert.ElementsMatch(t, tt.want, got)
			assert.ElementsMatch(t, tt.links, links)
		})
	}
}

func TestWhatACopyDoesNotMoveIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		files  []header
		source string
	}{
		"a file beside the source":       {[]header{file("a/x", ""), file("b", "")}, "a"},
		"a file with a longer name":      {[]header{file("a/x", ""), file("ab", "")}, "a"},
		"another file":                   {[]header{file("b", "")}, "a"},
		"a link as the source":           {[]header{file("b", ""), symlink("a", "b")}, "a"},
		"a link to beside the source":    {[]header{file("a/x", ""), symlink("a/l", "../b")}, "a"},
		"a link to above the source":     {[]header{file("a/x", ""), symlink("a/l", "..")}, "a"},
		"a link to above, from a folder": {[]header{file("a/b/x", ""), symlink("a/b/l", "../../c")}, "a/b"},
	} {
		_, entries, err := rewrite(pack(t, tt.files...), testLimits)
		require.NoError(t, err, name)
		_, _, err = Place(entries, tt.source, "/srv")
		assert.Error(t, err, name)
	}
}
