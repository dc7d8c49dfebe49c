package envd

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

var testLimits = WrapOptions{CPUSeconds: 300, MemoryBytes: 1 << 30}

// shellsOf lists the shells of this machine that an image's /bin/sh can be, each
// as the words before -c. The names are links, for a shell acts on its own.
func shellsOf(t *testing.T) map[string]string {
	t.Helper()
	shells := map[string]string{"sh": "/bin/sh"}
	for _, name := range []string{"dash", "bash", "busybox", "ksh", "zsh"} {
		file, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		link := filepath.Join(t.TempDir(), "sh")
		require.NoError(t, os.Symlink(file, link))
		shells[name] = link
	}
	return shells
}

// runWrapped runs a wrapped command with shell in place of /bin/sh.
func runWrapped(t *testing.T, shell string, o WrapOptions, cmd string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	req := start(cmd, args...)
	require.True(t, Wrap(req, o))
	require.Equal(t, "/bin/sh", req.Process.Cmd)
	c := exec.Command(shell, req.Process.Args...)
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	err = c.Run()
	return out.String(), errOut.String(), err
}

func TestWrapSetsLimits(t *testing.T) {
	for name, shell := range shellsOf(t) {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := runWrapped(t, shell, testLimits, "/bin/sh", "-c", `ulimit -St; ulimit -Ht; ulimit -Sd; ulimit -Hd; ulimit -v`)
			require.NoError(t, err, errOut)
			assert.Equal(t, "300\n305\n1048576\n1048576\nunlimited\n", out)
			assert.Empty(t, errOut)
		})
	}
}

// A limit of the image that is lower already must neither be raised nor break the
// command.
func TestWrapKeepsLowerLimits(t *testing.T) {
	for name, shell := range shellsOf(t) {
		t.Run(name, func(t *testing.T) {
			req := start("/bin/sh", "-c", "ulimit -St; ulimit -Ht")
			require.True(t, Wrap(req, testLimits))
			c := exec.Command("/bin/sh", append([]string{"-c", `ulimit -t 100; exec "$@"`, "--", shell}, req.Process.Args...)...)
			out, err := c.CombinedOutput()
			require.NoError(t, err, string(out))
			assert.Equal(t, "100\n100\n", string(out))
		})
	}
}

// A limit that cannot be set must not be silently missing.
func TestWrapRefusesWhereLimitCannotBeSet(t *testing.T) {
	for name, shell := range shellsOf(t) {
		t.Run(name, func(t *testing.T) {
			req := start("/bin/echo", "ran")
			require.True(t, Wrap(req, testLimits))
			script := strings.Replace(req.Process.Args[1], "l t ", "l W ", 1) // No shell knows this resource.
			c := exec.Command(shell, append([]string{"-c", script}, req.Process.Args[2:]...)...)
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, string(out))
			assert.NotContains(t, string(out), "ran")
		})
	}
}

// Where /bin/sh is bash, exported functions are part of its environment.
func TestWrapIsNotDefeatedByEnvironment(t *testing.T) {
	for name, shell := range shellsOf(t) {
		t.Run(name, func(t *testing.T) {
			req := start("/bin/sh", "-c", "ulimit -t")
			require.True(t, Wrap(req, testLimits))
			evil := filepath.Join(t.TempDir(), "evil")
			require.NoError(t, os.WriteFile(evil, []byte("ulimit() { :; }\nexec() { :; }\n"), 0o600))
			c := exec.Command(shell, req.Process.Args...)
			c.Env = append(os.Environ(), "BASH_FUNC_ulimit%%=() { :; }", "BASH_FUNC_l%%=() { :; }", "BASH_ENV="+evil, "ENV="+evil)
			out, err := c.CombinedOutput()
			require.NoError(t, err, string(out))
			assert.Equal(t, "300\n", string(out))
		})
	}
}

func TestWrapKeepsCommandItself(t *testing.T) {
	for name, shell := range shellsOf(t) {
		t.Run(name, func(t *testing.T) {
			t.Run("arguments", func(t *testing.T) {
				out, _, err := runWrapped(t, shell, testLimits, "/usr/bin/printf", "[%s]", "a b", "", "it's", "new\nline", "$HOME", `"q"`, "*", "-n", "--")
				require.NoError(t, err)
				assert.Equal(t, "[a b][][it's][new\nline][$HOME][\"q\"][*][-n][--]", out)
			})
			t.Run("exit code", func(t *testing.T) {
				_, _, err := runWrapped(t, shell, testLimits, "/bin/sh", "-c", "exit 3")
				var exit *exec.ExitError
				require.ErrorAs(t, err, &exit)
				assert.Equal(t, 3, exit.ExitCode())
			})
			t.Run("missing program", func(t *testing.T) {
				_, errOut, err := runWrapped(t, shell, testLimits, "/no/such/program")
				var exit *exec.ExitError
				require.ErrorAs(t, err, &exit)
				assert.Equal(t, 127, exit.ExitCode())
				assert.Contains(t, errOut, "/no/such/program")
			})
			t.Run("pid", func(t *testing.T) {
				req := start("/bin/sh", "-c", "echo $$")
				require.True(t, Wrap(req, testLimits))
				c := exec.Command(shell, req.Process.Args...)
				var out bytes.Buffer
				c.Stdout = &out
				require.NoError(t, c.Start())
				pid := c.Process.Pid
				require.NoError(t, c.Wait())
				assert.Equal(t, pid, atoi(t, strings.TrimSpace(out.String())))
			})
			t.Run("stdin", func(t *testing.T) {
				req := start("/bin/cat")
				require.True(t, Wrap(req, testLimits))
				c := exec.Command(shell, req.Process.Args...)
				c.Stdin = strings.NewReader("typed")
				out, err := c.Output()
				require.NoError(t, err)
				assert.Equal(t, "typed", string(out))
			})
		})
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n := 0
	for _, c := range s {
		require.True(t, c >= '0' && c <= '9', s)
		n = n*10 + int(c-'0')
	}
	return n
}

// The client must see why a process ended: SIGXCPU at the soft limit.
func TestCPULimitEndsSpinner(t *testing.T) {
	_, _, err := runWrapped(t, "/bin/sh", WrapOptions{CPUSeconds: 1}, "/bin/sh", "-c", "while :; do :; done")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	assert.Equal(t, syscall.SIGXCPU, status.Signal())
}

func TestWrapAndUnwrapAreInverse(t *testing.T) {
	wrappedOnce := start("/bin/bash", "-c", "id")
	require.True(t, Wrap(wrappedOnce, testLimits))
	noLimit := start("/bin/bash", "-c", "id")
	noLimit.Process.Cmd, noLimit.Process.Args = "/bin/sh", []string{"-c", `exec "$@"`, "--", "/bin/bash", "-c", "id"}
	edited := proto.Clone(wrappedOnce).(*processpb.StartRequest)
	edited.Process.Args[1] = strings.Replace(edited.Process.Args[1], "305", "306", 1)

	for name, req := range map[string]*processpb.StartRequest{
		"bash":               start("/bin/bash", "-l", "-c", "echo \"it's\"\n"),
		"no arguments":       start("/bin/true"),
		"looks wrapped":      wrappedOnce,
		"looks half wrapped": noLimit,
		"almost wrapped":     edited,
		"too short":          start("/bin/sh", "-c", `exec "$@"`, "--"),
	} {
		for _, o := range []WrapOptions{{}, {CPUSeconds: 5}, {MemoryBytes: 1000}, testLimits} {
			t.Run(name, func(t *testing.T) {
				got := proto.Clone(req).(*processpb.StartRequest)
				changed := Wrap(got, o)
				if o != (WrapOptions{}) {
					require.True(t, changed)
				}
				if name == "too short" || !strings.Contains(name, "wrapped") || name == "almost wrapped" {
					assert.Equal(t, changed, Unwrap(got.Process))
				} else {
					require.True(t, changed, "a command that looks wrapped is wrapped again")
					assert.True(t, Unwrap(got.Process))
				}
				assert.True(t, proto.Equal(req, got), "got %v", got)
			})
		}
	}
	assert.False(t, Wrap(&processpb.StartRequest{}, testLimits))
}

func TestShowList(t *testing.T) {
	wrapped := start("/bin/bash", "-l", "-c", "sleep 5")
	require.True(t, Wrap(wrapped, testLimits))
	list := &processpb.ListResponse{Processes: []*processpb.ProcessInfo{
		{Config: wrapped.Process, Pid: 7, Tag: proto.String("t")}, {Config: start("/bin/true").Process, Pid: 8},
	}}
	want := &processpb.ListResponse{Processes: []*processpb.ProcessInfo{
		{Config: start("/bin/bash", "-l", "-c", "sleep 5").Process, Pid: 7, Tag: proto.String("t")}, {Config: start("/bin/true").Process, Pid: 8},
	}}
	for _, codec := range []Codec{JSON, Proto} {
		for _, encoding := range []string{"", "gzip"} {
			t.Run(codec.String()+encoding, func(t *testing.T) {
				body, err := marshal(codec, list, nil)
				require.NoError(t, err)
				h := http.Header{"Content-Type": {"application/" + codec.String()}, "Content-Length": {"1"}}
				if encoding != "" {
					h.Set("Content-Encoding", encoding)
					body = []byte(gzipped(string(body)))
				}
				out, err := ShowList(h, bytes.NewReader(body), maxTest, nil)
				require.NoError(t, err)
				var got processpb.ListResponse
				_, err = unmarshal(codec, out, &got)
				require.NoError(t, err)
				assert.True(t, proto.Equal(want, &got), "got %v", &got)
				assert.Equal(t, http.Header{"Content-Type": {"application/" + codec.String()}}, h)
			})
		}
	}
	t.Run("unknown keys survive", func(t *testing.T) {
		args, err := marshal(JSON, wrapped, nil)
		require.NoError(t, err)
		body := `{"processes":[` + strings.Replace(string(args), `{"process":`, `{"config":`, 1) + `],"later":1}`
		out, err := ShowList(http.Header{"Content-Type": {"application/json"}}, strings.NewReader(body), maxTest, nil)
		require.NoError(t, err)
		assert.JSONEq(t, `{"processes":[{"config":{"cmd":"/bin/bash","args":["-l","-c","sleep 5"]}}],"later":1}`, string(out))
	})
	t.Run("values of secret variables are hidden", func(t *testing.T) {
		body := `{"processes":[{"config":{"cmd":"/bin/true","envs":{"API_KEY":"abc","LANG":"C","EMPTY_TOKEN":""}},"pid":1}]}`
		out, err := ShowList(http.Header{"Content-Type": {"application/json"}}, strings.NewReader(body), maxTest, nil)
		require.NoError(t, err)
		assert.JSONEq(t, `{"processes":[{"config":{"cmd":"/bin/true","envs":{"API_KEY":"<secret:variable>","LANG":"C","EMPTY_TOKEN":""}},"pid":1}]}`, string(out))
	})
	t.Run("nothing wrapped passes as it came", func(t *testing.T) {
		body := gzipped(`{ "processes": [] }`)
		h := http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}
		out, err := ShowList(h, strings.NewReader(body), maxTest, nil)
		require.NoError(t, err)
		assert.Equal(t, body, string(out))
		assert.Equal(t, "gzip", h.Get("Content-Encoding"))
	})
	t.Run("no list passes as it came", func(t *testing.T) {
		for ct, body := range map[string]string{"text/html": "<html>", "application/json": `{"code":401,"message":"no"}`} {
			out, err := ShowList(http.Header{"Content-Type": {ct}}, strings.NewReader(body), maxTest, nil)
			require.NoError(t, err)
			assert.Equal(t, body, string(out))
		}
	})
	for name, body := range map[string]string{"cut short": `{"processes":[`, "too large": `{"x":"` + strings.Repeat("a", maxTest) + `"}`} {
		t.Run(name, func(t *testing.T) {
			_, err := ShowList(http.Header{"Content-Type": {"application/json"}}, strings.NewReader(body), maxTest, nil)
			require.Error(t, err)
		})
	}
}
