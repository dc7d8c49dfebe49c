package emulator

import (
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sandbox's file tree ends at its folder, whatever path or link is tried.
func TestNothingLeadsOutOfTheFolder(t *testing.T) {
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("of the machine"), 0o600))
	dir := filepath.Join(t.TempDir(), "root")
	require.NoError(t, seed(dir, ""))
	s, err := newSandboxFS(dir, nil)
	require.NoError(t, err)
	defer s.close()
	links := map[string]string{
		"home/user/abs":   filepath.Join(outside, "secret"),
		"home/user/up":    "../../../../../../../../.." + filepath.Join(outside, "secret"),
		"home/user/dir":   outside,
		"home/user/chain": "dir/secret",
	}
	for name, to := range links {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	for _, p := range []string{
		"/home/user/abs", "/home/user/up", "/home/user/chain", "/home/user/dir/secret",
		filepath.Join(outside, "secret"), "/../../.." + filepath.Join(outside, "secret"),
	} {
		_, err := s.open(p, os.O_RDONLY, 0)
		require.ErrorIs(t, err, os.ErrNotExist, p)
		_, err = s.stat(p)
		require.ErrorIs(t, err, os.ErrNotExist, p)
	}
	// Writing through such a link stays inside as well.
	require.NoError(t, s.mkdirAll(outside))
	f, err := s.open("/home/user/dir/new", os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = os.Stat(filepath.Join(outside, "new"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, s.removeAll("/home/user/dir/../../../../../.."))
	_, err = os.Stat(filepath.Join(outside, "secret"))
	require.NoError(t, err, "removing \"/\" removes the sandbox's files only")
}

func TestLinksResolveInsideTheSandbox(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	require.NoError(t, seed(dir, ""))
	s, err := newSandboxFS(dir, nil)
	require.NoError(t, err)
	defer s.close()
	for name, to := range map[string]string{
		"tmp/abs": "/home/user/f", "tmp/rel": "../home/user/f", "tmp/real": filepath.Join(dir, "home/user/f"),
		"tmp/home": "/home/user", "tmp/loop": "loop",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	for p, want := range map[string]string{
		"/tmp/abs": "/home/user/f", "/tmp/rel": "/home/user/f", "/tmp/real": "/home/user/f",
		"/tmp/home/f": "/home/user/f", "/tmp/home/../f": "/tmp/f", "/nowhere/x": "/nowhere/x", "/": "/",
	} {
		got, err := s.resolve(p, true)
		require.NoError(t, err)
		require.Equal(t, want, got, p)
	}
	got, err := s.resolve("/tmp/abs", false)
	require.NoError(t, err)
	require.Equal(t, "/tmp/abs", got)
	_, err = s.resolve("/tmp/loop", true)
	require.ErrorIs(t, err, syscall.ELOOP)
}

// Commands and the files API agree on paths: always on relative ones, and on
// absolute ones where the machine allows a namespace.
func TestCommandsAndFilesAgree(t *testing.T) {
	for _, mode := range []string{"as the machine allows", "without a namespace"} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t, Options{})
			if mode == "without a namespace" {
				l.e.confine = confinement{why: "it is switched off for a test"}
				require.Contains(t, l.e.Notice(), "it is switched off for a test")
			}
			b := l.newBox()
			require.Equal(t, http.StatusOK, b.envd(http.MethodPost, "/files?path=/home/user/d/a.txt", "written", "Content-Type", "application/octet-stream").status)
			require.Equal(t, "written", b.run(`cat d/a.txt; cd "$HOME"; cat d/a.txt > b.txt; ln -s "$PWD/b.txt" link`))
			require.Equal(t, "written", b.envd(http.MethodGet, "/files?path=~/b.txt", "").body)
			require.Equal(t, "written", b.envd(http.MethodGet, "/files?path=link", "").body)
			require.Equal(t, "2\n", b.run("python3 -c 'print(1+1)'"))
			py := b.interp(http.MethodPost, "/execute", `{"code":"print(open('d/a.txt').read(), end='')"}`)
			require.Contains(t, py.body, `"text": "written"`)
			if !b.e.lookup(b.id).spawn.confined {
				return
			}
			require.Equal(t, "written/home/user\n/tmp\nuser\n", b.run("cat /home/user/d/a.txt; pwd; cd /tmp; pwd; id -un"))
			require.Contains(t, b.start(command("echo x > /usr/x; ls -d /home/*")).stderr, "Read-only file system")
		})
	}
}
