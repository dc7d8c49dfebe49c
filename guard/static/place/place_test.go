package place

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestResolve(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ path, cwd, want string }{
		{"/a/../b", "", "/b"},
		{"~", "", "/home/user"},
		{"~/a", "", "/home/user/a"},
		{"~root/a", "", "/root/a"},
		{"~bob", "", "/home/bob"},
		{"a/b", "/x", "/x/a/b"},
		{"../y", "/x/z", "/x/y"},
		{"a/./b", "", "a/b"},
		{"//etc//passwd", "", "/etc/passwd"},
		{"file:///etc/passwd", "", "/etc/passwd"},
		{"", "/x", ""},
	} {
		assert.Equal(t, c.want, Resolve(c.path, c.cwd), c.path)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()

	for p, want := range map[string]Class{
		"/":                                Tree,
		"/*":                               Tree,
		"/etc":                             Tree,
		"/home/user":                       Tree,
		"/home/user/*":                     Tree,
		"/root":                            Tree,
		"/var/www":                         Tree,
		"/etc/shadow":                      Secret,
		"/etc/ssh/ssh_host_rsa_key":        Secret,
		"/home/user/.ssh/id_rsa":           Secret,
		"/home/bob/.aws/credentials":       Secret,
		"/root/.kube/config":               Secret,
		"/proc/12/environ":                 Secret,
		"/etc/passwd":                      AuthFile,
		"/etc/sudoers.d/x":                 AuthFile,
		"/home/user/.ssh/authorized_keys":  AuthFile,
		"/home/user/p/.env":                Private,
		"/home/user/.bash_history":         Log,
		"/var/log/syslog":                  Log,
		"/var/log/journal/x":               Log,
		"/home/user/.bashrc":               SelfRunning,
		"/etc/profile.d/x.sh":              SelfRunning,
		"/home/user/p/.git/hooks/pre-push": SelfRunning,
		"/etc/cron.d/x":                    Startup,
		"/etc/systemd/system/x.service":    Startup,
		"/home/user/.config/autostart/x":   Startup,
		"/dev/sda1":                        Device,
		"/dev/nvme0n1":                     Device,
		"/proc/sysrq-trigger":              Kernel,
		"/proc/sys/kernel/core_pattern":    HostEscape,
		"/sys/fs/cgroup/x/release_agent":   HostEscape,
		"/var/run/docker.sock":             HostEscape,
		"/tmp/x":                           Temp,
		"/usr/bin/ls":                      Binary,
		"/etc/fstab":                       Vital,
	} {
		assert.True(t, Classify(p).Has(want), p)
	}

	for p, not := range map[string]Class{
		"/tmp":                               Vital,
		"/tmp/*":                             Tree | Vital,
		"/home/user/project":                 Tree | Vital | Secret,
		"/home/user/.ssh/id_rsa.pub":         Secret,
		"/home/user/.ssh/known_hosts":        Secret,
		"/var/lib/apt/lists/*":               Tree | Vital,
		"/usr/local/lib/node_modules/x":      Tree | Vital,
		"/home/user/p/.git/hooks/x.sample":   SelfRunning,
		"/dev/null":                          Device | Vital,
		"/home/user/data/etc/passwd":         AuthFile,
		"/var/log/myapp/a.log":               Log,
		"/usr/lib/python3/site-packages/a/b": Vital | Binary,
		"etc/shadow":                         Secret,
		"/home/user/.config/matplotlib/x":    Secret | SelfRunning,
	} {
		assert.False(t, Classify(p).Has(not), p)
	}
}

func TestAddressesInEverySpelling(t *testing.T) {
	t.Parallel()

	for s, want := range map[string]string{
		"169.254.169.254": "169.254.169.254", "0xA9FEA9FE": "169.254.169.254", "2852039166": "169.254.169.254", "0251.0376.0251.0376": "169.254.169.254",
		"127.1": "127.0.0.1", "0x7f.1": "127.0.0.1", "::1": "::1", "::ffff:10.0.0.1": "10.0.0.1",
	} {
		a, ok := Address(s)
		assert.True(t, ok, s)
		assert.Equal(t, want, a.String(), s)
	}

	for _, s := range []string{"", "example.com", "1.2.3.4.5", "256.1.1.1", "1.2.3.x", "4294967296"} {
		_, ok := Address(s)
		assert.False(t, ok, s)
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()

	for s, want := range map[string]HostClass{
		"http://169.254.169.254/x":                  Metadata,
		"metadata.google.internal":                  Metadata,
		"http://localhost:3000/":                    Loopback,
		"127.0.0.1:80":                              Loopback,
		"http://[::1]:8080/":                        Loopback,
		"10.1.2.3":                                  Internal,
		"https://webhook.site/abc":                  Drop,
		"https://discord.com/api/webhooks/1/x":      Drop,
		"https://x.ngrok.io/":                       Drop,
		"https://sh.rustup.rs":                      Installer,
		"https://astral.sh/uv/install.sh":           Installer,
		"https://files.pythonhosted.org/packages/x": Registry,
		"stratum+tcp://xmr.nanopool.org:14444":      Pool,
		"eth.some-pool.example":                     Pool,
		"http://abc.onion/":                         Onion,
		"http://u:p@203.0.113.5/":                   Literal,
	} {
		assert.True(t, ClassifyHost(s).Has(want), s)
	}

	for s, not := range map[string]HostClass{
		"https://discord.com/developers":        Drop,
		"https://notwebhook.site.example/":      Drop,
		"https://example.com/sh.rustup.rs":      Installer,
		"https://evil.example/astral.sh/":       Installer,
		"https://pool.ntp.org":                  Pool,
		"https://carpool.example":               Pool,
		"https://example.com/?u=127.0.0.1":      Loopback,
		"https://127.0.0.1.example.com/":        Loopback,
		"https://pypi.org.evil.example/simple/": Registry,
	} {
		assert.False(t, ClassifyHost(s).Has(not), s)
	}
}
