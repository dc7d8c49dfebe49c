package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
)

var testLimits = Limits{Bytes: 1 << 20, Entries: 20}

type header = tar.Header

func pack(t testing.TB, headers ...header) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		text := ""
		if h.Typeflag == 0 || h.Typeflag == tar.TypeReg { // the text of a file stands for its size
			text, h.Gname = h.Gname, ""
			h.Size = int64(len(text))
		}
		require.NoError(t, w.WriteHeader(&h))
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

func file(name, text string) header { return header{Name: name, Gname: text, Mode: 0o644} }
func folder(name string) header     { return header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755} }
func symlink(name, target string) header {
	return header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
}
func hardlink(name, target string) header {
	return header{Name: name, Typeflag: tar.TypeLink, Linkname: target}
}

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

func ignore(Entry, io.Reader) error { return nil }

func rewrite(src string, limits Limits) (string, []Entry, error) {
	var b bytes.Buffer
	entries, err := Rewrite(&b, strings.NewReader(src), limits, ignore)
	return b.String(), entries, err
}

func summary(entries []Entry) []string {
	out := []string{}
	for _, e := range entries {
		line := string(rune(e.Kind)) + " " + e.Path
		if e.Target+e.Of != "" {
			line += " -> " + e.Target + e.Of
		}
		out = append(out, line)
	}
	return out
}

func TestAnArchiveIsWrittenAnewAsItWasRead(t *testing.T) {
	long := strings.Repeat("folder/", 30) + strings.Repeat("x", 120)
	src := pack(t, folder("./"), folder("./a/"), file("./a//b", "text"), file(long, "long"), file("ünï", "ü"), symlink("a/l", "../ünï"), hardlink("a/h", "./a/b"), hardlink("a/i", "a/h"),
		header{Name: "run", Gname: "x", Mode: 0o6755, Uid: 1000, Uname: "me", ModTime: time.Unix(1e9, 4e8), PAXRecords: map[string]string{"SCHILY.xattr.user.x": "y"}})
	want := []string{"d .", "d a", "f a/b", "f " + long, "f ünï", "l a/l -> ../ünï", "f a/h -> a/b", "f a/i -> a/b", "f run"}
	var plain string
	for name, sent := range map[string]string{
		"plain": src, "gzip": gzipped(src), "gzip of two members": gzipped(src[:700]) + gzipped(src[700:]), "no end": src[:len(src)-1024], "more padding": src + strings.Repeat("\x00", 9000),
		"gzip with a name": "\x1f\x8b\x08\x08" + gzipped(src)[4:10] + "name\x00" + gzipped(src)[10:],
	} {
		seen := map[string]string{}
		var b bytes.Buffer
		entries, err := Rewrite(&b, strings.NewReader(sent), testLimits, func(e Entry, r io.Reader) error {
			all, err := io.ReadAll(io.LimitReader(r, 3)) // not all of it
			seen[e.Path] = string(all)
			return err
		})
		require.NoError(t, err, name)
		require.Equal(t, want, summary(entries), name)
		require.Equal(t, map[string]string{"a/b": "tex", long: "lon", "ünï": "ü", "run": "x"}, seen, name)
		require.Equal(t, sha256.Sum256([]byte("text")), entries[6].Digest)
		require.Equal(t, strings.HasPrefix(sent, "\x1f\x8b"), strings.HasPrefix(b.String(), "\x1f\x8b"), name)

		again, second, err := rewrite(b.String(), testLimits)
		require.NoError(t, err)
		require.Equal(t, b.String(), again, "what was written is read the same")
		require.Equal(t, entries, second)
		if name == "plain" {
			plain = again
		}
	}
	tr := tar.NewReader(strings.NewReader(plain))
	var last *tar.Header
	for h, err := tr.Next(); err == nil; h, err = tr.Next() {
		last = h
	}
	require.Equal(t, int64(0o755), last.Mode, "no program that runs as its owner")
	require.True(t, last.ModTime.Equal(time.Unix(1e9, 0)))
	require.Zero(t, last.Uid)
	require.Empty(t, last.Uname)
	require.Empty(t, last.PAXRecords)
}

func TestWhatIsNotClearlyBelowTheArchiveIsRefused(t *testing.T) {
	deep := strings.Repeat("a/", 201) + "b"
	for name, src := range map[string]string{
		"an absolute path":               pack(t, file("/etc/passwd", "x")),
		"..":                             pack(t, file("../x", "x")),
		".. inside":                      pack(t, file("a/../../x", "x")),
		".. that comes back":             pack(t, file("a/../x", "x")),
		"only ..":                        pack(t, folder("..")),
		"a folder with ..":               pack(t, folder("a/../../")),
		"too deep":                       pack(t, file(deep, "x")),
		"a control character":            pack(t, file("a\nb", "x")),
		"not UTF-8":                      pack(t, file("a\xff", "x")),
		"an absolute link":               pack(t, symlink("l", "/etc")),
		"a link out":                     pack(t, symlink("l", "..")),
		"a link out from a folder":       pack(t, symlink("a/l", "../../etc")),
		"a link that turns round":        pack(t, symlink("a/l", "b/../../x")),
		"a link to nothing":              pack(t, symlink("a/l", "\x01")),
		"a file below a link":            pack(t, symlink("l", "d"), file("l/x", "x")),
		"a file below a link, elsewhere": pack(t, file("d/x", "y"), symlink("l", "d"), file("l/x", "x")),
		"a folder below a link":          pack(t, folder("d/"), symlink("l", "d"), folder("l/x/")),
		"a file below a file":            pack(t, file("a", "x"), file("a/b", "x")),
		"a file for a folder":            pack(t, file("a/b", "x"), file("a", "x")),
		"a link for a folder":            pack(t, file("a/b", "x"), symlink("a", "b")),
		"a link for the root":            pack(t, symlink("./", "x")),
		"a name twice":                   pack(t, file("a", "x"), file("./a", "y")),
		"a folder twice":                 pack(t, folder("a/"), folder("a/")),
		"a file, then a link of it":      pack(t, file("a", "x"), symlink("a", "b")),
		"a hard link out":                pack(t, hardlink("l", "../x")),
		"an absolute hard link":          pack(t, hardlink("l", "/etc/shadow")),
		"a hard link to what comes":      pack(t, hardlink("l", "a"), file("a", "x")),
		"a hard link to a folder":        pack(t, folder("a"), hardlink("l", "a")),
		"a hard link to a link":          pack(t, symlink("a", "b"), hardlink("l", "a")),
		"a hard link to itself":          pack(t, hardlink("l", "l")),
		"a device":                       pack(t, header{Name: "l", Typeflag: tar.TypeBlock, Devmajor: 8}),
		"a character device":             pack(t, header{Name: "l", Typeflag: tar.TypeChar, Devmajor: 1}),
		"a pipe":                         pack(t, header{Name: "l", Typeflag: tar.TypeFifo}),
		"global headers":                 pack(t, header{Name: "g", Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "/etc/passwd"}}, file("a", "x")),
		"a kind that nobody knows":       kindOf(pack(t, file("a", "x")), 'D'),
	} {
		_, _, err := rewrite(src, testLimits)
		var ref *refusal.Refusal
		require.ErrorAs(t, err, &ref, name)
		assert.Equal(t, refusal.CodePolicy, ref.Code, name)
		_, _, err = rewrite(gzipped(src), testLimits)
		require.ErrorAs(t, err, &ref, name)
	}
}

// kindOf gives the first header of a tar another kind, and the sum that belongs to
// it.
func kindOf(src string, kind byte) string {
	b := []byte(src)
	b[156] = kind
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:156], []byte{'0' + byte(sum>>15&7), '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7), '0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' '})
	return string(b)
}

func TestWhatIsNoTarIsRefused(t *testing.T) {
	good := pack(t, file("a", strings.Repeat("text", 200)))
	for name, src := range map[string]string{
		"text":                     strings.Repeat("no tar ", 100),
		"short":                    "x",
		"broken off":               good[:700],
		"a gzip broken off":        gzipped(good)[:40],
		"a gzip with a wrong sum":  gzipped(good)[:len(gzipped(good))-8] + "12345678",
		"a gzip of text":           gzipped("x"),
		"a gzip of a gzip":         gzipped(gzipped(good)),
		"something behind the end": good + "more",
		"an archive behind it":     good + good,
		"something behind a gzip":  gzipped(good) + "more",
		"another after padding":    good + strings.Repeat("\x00", 4096) + pack(t, file("b", "x")),
		"a wrong sum":              "b" + good[1:],
		"zip":                      "PK\x03\x04" + strings.Repeat("\x00", 600),
	} {
		_, _, err := rewrite(src, testLimits)
		var ref *refusal.Refusal
		require.ErrorAs(t, err, &ref, name)
		assert.Equal(t, refusal.CodeInvalid, ref.Code, name)
	}
}

func TestSparseFilesAreRefused(t *testing.T) {
	gnu := []byte(pack(t, file("a", "")))
	copy(gnu[257:265], "ustar  \x00")
	// Records of this name cannot be written with the package.
	posix := strings.ReplaceAll(pack(t, header{Name: "a", Gname: "1\n0\n5\n" + strings.Repeat("\x00", 506) + "text1", Mode: 0o644, PAXRecords: map[string]string{"E2B.sparse.major": "1", "E2B.sparse.minor": "0", "E2B.sparse.name": "b", "E2B.sparse.realsize": "5"}}), "E2B.sparse", "GNU.sparse")
	for name, src := range map[string]string{"of GNU tar": kindOf(string(gnu), tar.TypeGNUSparse), "of POSIX": posix} {
		_, _, err := rewrite(src, testLimits)
		require.ErrorContains(t, err, "sparse", name)
	}
}

func TestAnArchiveIsBounded(t *testing.T) {
	many := make([]header, 21)
	for i := range many {
		many[i] = file(strings.Repeat("x", i+1), "")
	}
	bomb := pack(t, file("a", strings.Repeat("\x00", 2<<20)))
	padding := pack(t, file("a", "x")) + strings.Repeat("\x00", 2<<20)
	claimed := kindOf(pack(t, file("a", "")), '0')
	for name, src := range map[string]string{"many files": pack(t, many...), "a large file": bomb, "a gzip bomb": gzipped(bomb), "much padding": padding, "much padding in a gzip": gzipped(padding)} {
		out, _, err := rewrite(src, testLimits)
		var ref *refusal.Refusal
		require.ErrorAs(t, err, &ref, name)
		assert.Equal(t, refusal.CodeTooLarge, ref.Code, name)
		assert.Less(t, len(out), 2<<20, name)
	}
	_, _, err := rewrite(claimed, testLimits)
	require.NoError(t, err)
}

func TestErrorsOfTheEndsAreTold(t *testing.T) {
	mine := errors.New("mine")
	_, err := Rewrite(io.Discard, strings.NewReader(pack(t, file("a", "x"))), testLimits, func(Entry, io.Reader) error { return mine })
	require.ErrorIs(t, err, mine)
	_, err = Rewrite(failing{mine}, strings.NewReader(pack(t, file("a", "x"))), testLimits, ignore)
	require.ErrorIs(t, err, mine)
	_, err = Rewrite(failing{mine}, strings.NewReader(gzipped(pack(t, file("a", strings.Repeat("x", 1<<19))))), testLimits, ignore)
	require.ErrorIs(t, err, mine)
	_, err = Rewrite(io.Discard, io.MultiReader(strings.NewReader(pack(t, file("a", "xxxx"))[:514]), failing{mine}), testLimits, ignore)
	require.ErrorIs(t, err, mine)
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
func (f failing) Read([]byte) (int, error)  { return 0, f.error }

func TestTheDigestSaysWhatIsUnpacked(t *testing.T) {
	digest := func(headers ...header) [32]byte {
		_, entries, err := rewrite(pack(t, headers...), testLimits)
		require.NoError(t, err)
		return Digest(entries)
	}
	base := digest(folder("a/"), file("a/b", "x"), symlink("a/l", "b"))
	old := file("a/b", "x")
	old.ModTime, old.Uid = time.Unix(1, 0), 7
	assert.Equal(t, base, digest(folder("a/"), symlink("./a/l", "b"), old), "neither order nor times nor owners, which COPY sets")
	executable := file("a/b", "x")
	executable.Mode = 0o755
	for name, other := range map[string][32]byte{
		"text":    digest(folder("a/"), file("a/b", "y"), symlink("a/l", "b")),
		"mode":    digest(folder("a/"), executable, symlink("a/l", "b")),
		"name":    digest(folder("a/"), file("a/c", "x"), symlink("a/l", "b")),
		"target":  digest(folder("a/"), file("a/b", "x"), symlink("a/l", "c")),
		"missing": digest(folder("a/"), file("a/b", "x")),
	} {
		assert.NotEqual(t, base, other, name)
	}
}

// What the SDK of E2B sends below a link to a folder is in that folder already.
func TestWhatIsBelowALinkOnceMoreIsLeftOut(t *testing.T) {
	_, entries, err := rewrite(pack(t, folder("a/"), symlink("a/also", "real"), file("a/also/x", "text"), folder("a/also/d/"), symlink("a/also/l", "x"), symlink("a/more", "also"), file("a/more/x", "text"),
		folder("a/real/"), folder("a/real/d/"), symlink("a/real/l", "x"), file("a/real/x", "text")), testLimits)
	require.NoError(t, err)
	require.Equal(t, []string{"d a", "l a/also -> real", "l a/more -> also", "d a/real", "d a/real/d", "l a/real/l -> x", "f a/real/x"}, summary(entries))
}

func FuzzRewrite(f *testing.F) {
	f.Add([]byte(pack(f, folder("a/"), file("a/b", "text"), symlink("a/l", "b"), hardlink("h", "a/b"))))
	f.Add([]byte(gzipped(pack(f, file("./x", "y")))))
	f.Fuzz(func(t *testing.T, src []byte) {
		var b bytes.Buffer
		shown := map[string][32]byte{}
		entries, err := Rewrite(&b, bytes.NewReader(src), testLimits, func(e Entry, r io.Reader) error {
			all, err := io.ReadAll(r)
			shown[e.Path] = sha256.Sum256(all)
			return err
		})
		if err != nil {
			return
		}
		// As tar reads it.
		plain := io.Reader(bytes.NewReader(b.Bytes()))
		if bytes.HasPrefix(b.Bytes(), []byte("\x1f\x8b")) {
			if plain, err = gzip.NewReader(plain); err != nil {
				t.Fatal(err)
			}
		}
		links, tr := map[string]bool{}, tar.NewReader(plain)
		for i := 0; ; i++ {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				if i != len(entries) {
					t.Fatalf("%d entries of %d", i, len(entries))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			e := entries[i]
			if name := strings.TrimSuffix(h.Name, "/"); name != e.Path || strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
				t.Fatalf("%q for %q", h.Name, e.Path)
			}
			for dir := range strings.SplitSeq(e.Path, "/") {
				if at := e.Path[:strings.Index(e.Path, dir)]; links[strings.TrimSuffix(at, "/")] {
					t.Fatalf("%q is below a link", e.Path)
				}
			}
			links[e.Path] = h.Typeflag == tar.TypeSymlink
			if h.Typeflag == tar.TypeReg {
				all, err := io.ReadAll(tr)
				if err != nil || sha256.Sum256(all) != e.Digest || shown[e.Path] != e.Digest {
					t.Fatalf("%q holds something that was not shown", e.Path)
				}
			}
		}
	})
}
