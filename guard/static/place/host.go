package place

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// HostClass is a set of things that are true of a host.
type HostClass uint16

// The classes of hosts.
const (
	// Metadata hands out a cloud machine's credentials.
	Metadata HostClass = 1 << iota
	// Loopback is the sandbox itself.
	Loopback
	// Internal is a private range.
	Internal
	// Drop is a place made to receive data from anywhere: webhooks, paste
	// sites, request bins, anonymous file hosts, tunnels.
	Drop
	// Literal is an address rather than a name.
	Literal
	// Registry serves packages.
	Registry
	// Installer serves an installer script that its project tells people to pipe
	// into a shell.
	Installer
	// Pool is a crypto mining pool.
	Pool
	// Onion is only reachable through an anonymity network.
	Onion
)

// Has says whether any class of x holds.
func (c HostClass) Has(x HostClass) bool { return c&x != 0 }

var drops = []string{
	"discord.com/api/webhooks", "discordapp.com/api/webhooks", "canary.discord.com/api/webhooks", "ptb.discord.com/api/webhooks", "api.telegram.org/bot",
	"hooks.slack.com", "webhook.site", "requestbin", "pipedream.net", "beeceptor.com", "hookbin.com", "pastebin.com/api", "paste.ee", "hastebin.com",
	"ix.io", "0x0.st", "transfer.sh", "file.io", "termbin.com", "anonfiles.com", "gofile.io", "bashupload.com", "temp.sh", "catbox.moe",
	"ngrok.io", "ngrok-free.app", "ngrok.app", "serveo.net", "loca.lt", "trycloudflare.com", "interact.sh", "oast.fun", "oast.pro", "oast.live",
	"oast.site", "oast.online", "oast.me", "oastify.com", "burpcollaborator.net", "dnslog.cn", "ceye.io", "requestcatcher.com", "webhook.office.com",
	"api.ipify.org/log", "dpaste.com", "controlc.com", "ghostbin", "rentry.co", "uguu.se", "litterbox", "filebin.net", "sprunge.us", "clbin.com",
	"content.dropboxapi.com", "canarytokens.com", "bin.sh",
}

var installers = []string{
	"sh.rustup.rs", "astral.sh/", "get.docker.com", "deb.nodesource.com/", "rpm.nodesource.com/", "raw.githubusercontent.com/nvm-sh/",
	"raw.githubusercontent.com/Homebrew/", "bun.sh/", "get.pnpm.io/", "install.python-poetry.org", "deno.land/", "get.sdkman.io", "bootstrap.pypa.io/",
	"fnm.vercel.app/", "raw.githubusercontent.com/ohmyzsh/", "get.helm.sh", "raw.githubusercontent.com/helm/", "get.volta.sh", "starship.rs/",
	"mise.run", "mise.jdx.dev/", "pixi.sh/", "pyenv.run", "get.k3s.io", "ollama.com/install.sh", "cli.github.com/", "dl.yarnpkg.com/",
	"repo.anaconda.com/", "micro.mamba.pm/", "nixos.org/", "install.determinate.systems", "claude.ai/install.sh", "sh.brew.sh",
	"download.docker.com/", "packages.microsoft.com/", "dot.net/", "get.scoop.sh", "install.duckdb.org", "raw.githubusercontent.com/pyenv/",
	"cursor.com/install", "opencode.ai/install", "tailscale.com/install.sh", "fly.io/install.sh", "raw.githubusercontent.com/nodenv/",
	"sdk.cloud.google.com", "awscli.amazonaws.com/", "apt.llvm.org/", "getcomposer.org/", "yihui.org/tinytex", "raw.githubusercontent.com/rbenv/",
	"www.nushell.sh", "getmic.ro", "webi.sh/", "webinstall.dev/", "raw.githubusercontent.com/junegunn/", "install.meteor.com", "gef.blah.cat",
	"cpanmin.us", "raw.githubusercontent.com/robbyrussell/", "julialang.org/", "install.julialang.org", "get.haskellup", "get-ghcup.haskell.org",
	"raw.github.com/robbyrussell/", "raw.githubusercontent.com/creationix/nvm", "raw.githubusercontent.com/nodesource/", "www.rust-lang.org", "npmjs.org/install.sh",
	"www.npmjs.com/install.sh", "bit.dev", "get.rvm.io", "pi.dev",
}

var registries = []string{
	"pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "registry.yarnpkg.com", "crates.io", "static.crates.io", "index.crates.io",
	"proxy.golang.org", "rubygems.org", "deb.debian.org", "archive.ubuntu.com", "security.ubuntu.com", "security.debian.org",
	"dl-cdn.alpinelinux.org", "repo.maven.apache.org", "repo1.maven.org", "conda.anaconda.org", "cran.r-project.org", "cloud.r-project.org",
}

var pools = []string{
	"minexmr", "supportxmr", "nanopool.org", "moneroocean", "hashvault", "2miners.com", "f2pool", "ethermine", "nicehash", "miningpoolhub",
	"unmineable", "herominers", "xmrpool", "c3pool", "dwarfpool", "sparkpool", "flypool", "viabtc", "antpool", "poolin", "slushpool",
	"prohashing", "zpool.ca", "crypto-pool", "coinhive", "coin-hive", "cryptoloot",
}

// The tables above, arranged to be looked up: paths by how they begin, words
// by their being in the host, and domains by name, for themselves and all below.
var (
	installerPaths = NewWords(installers...)
	poolWords      = NewWords(pools...)
	dropPaths      = NewWords(dropsOf(func(d string) bool { return strings.Contains(d, "/") })...)
	dropWords      = NewWords(dropsOf(func(d string) bool { return !strings.ContainsAny(d, "/.") })...)
	domains        = func() map[string]HostClass {
		m := map[string]HostClass{}

		for _, d := range dropsOf(func(d string) bool { return strings.Contains(d, ".") && !strings.Contains(d, "/") }) {
			m[d] |= Drop
		}

		for _, d := range registries {
			m[d] |= Registry
		}

		return m
	}()
)

func dropsOf(kind func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(drops), func(d string) bool { return !kind(d) })
}

// coins are labels that, beside one with "pool" or "mining" in it, make a host
// a mining pool.
var coins = setOf("xmr", "monero", "eth", "etc", "btc", "rvn", "zec", "ltc", "doge", "kas", "erg", "ton", "randomx", "kawpow", "ethash", "stratum")

// Host is the host of an URL, of host:port, or of a bare name, in lower case;
// userinfo, port and path are dropped.
func Host(s string) string {
	if i := strings.Index(s, "://"); i >= 0 {
		if u, err := url.Parse(s); err == nil && u.Hostname() != "" {
			return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		}

		s = s[i+3:]
	}

	s, _, _ = strings.Cut(s, "/")
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}

	if strings.HasPrefix(s, "[") {
		s, _, _ = strings.Cut(s[1:], "]")
	} else if strings.Count(s, ":") == 1 {
		s, _, _ = strings.Cut(s, ":")
	}

	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// ClassifyHost says what is true of the host of an URL or host name.
func ClassifyHost(target string) HostClass {
	var c HostClass

	host := Host(target)
	rest := target

	if i := strings.Index(rest, "://"); i >= 0 {
		rest = rest[i+3:]
	}

	lower := strings.ToLower(rest)

	addr, ok := Address(host)
	if !ok {
		addr, ok = named(host)
	}

	if ok {
		c |= Literal

		switch {
		case isMetadata(addr):
			c |= Metadata
		case addr.IsLoopback() || addr.IsUnspecified():
			c |= Loopback
		case addr.IsPrivate() || addr.IsLinkLocalUnicast():
			c |= Internal
		}
	}

	switch host {
	case "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "metadata.azure.com", "metadata.azure.internal", "instance-data.ec2.internal":
		c |= Metadata
	case "localhost", "host.docker.internal", "ip6-localhost":
		c |= Loopback
	}

	if dropPaths.Begin(lower) || dropPaths.Begin(strings.TrimPrefix(lower, "www.")) || dropWords.In(host) {
		c |= Drop
	}

	if installerPaths.Begin(rest) || installerPaths.Begin(strings.TrimPrefix(rest, "www.")) {
		c |= Installer
	}

	for name := host; name != ""; _, name, _ = strings.Cut(name, ".") {
		c |= domains[name]
	}

	if poolWords.In(host) || poolByLabels(host) {
		c |= Pool
	}

	if strings.HasSuffix(host, ".onion") || strings.HasSuffix(host, ".i2p") {
		c |= Onion
	}

	return c
}

// wildcardNames are domains whose names resolve to the address that they hold, as
// in 10.0.0.1.nip.io or app-10-0-0-1.nip.io.
var wildcardNames = []string{".nip.io", ".sslip.io", ".xip.io"}

func named(host string) (netip.Addr, bool) {
	for _, domain := range wildcardNames {
		name, ok := strings.CutSuffix(host, domain)
		if !ok {
			continue
		}

		parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '-' })
		if len(parts) >= 4 {
			if addr, err := netip.ParseAddr(strings.Join(parts[len(parts)-4:], ".")); err == nil {
				return addr, true
			}
		}
	}

	return netip.Addr{}, false
}

func poolByLabels(host string) bool {
	if !strings.Contains(host, "pool") && !strings.Contains(host, "mining") && !strings.HasPrefix(host, "stratum") {
		return false
	}

	pool, coin := 0, 0

	for label := range strings.SplitSeq(host, ".") {
		for word := range strings.SplitSeq(label, "-") {
			switch {
			case coins[word]:
				coin++
			case word == "pool", word == "pools", word == "mining", word == "mine", word == "miner":
				pool++
			}
		}
	}

	return pool > 0 && coin > 0 || pool > 1
}

func isMetadata(a netip.Addr) bool {
	switch a.String() {
	case "169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254", "169.254.169.123", "192.0.0.192", "::ffff:169.254.169.254":
		return true
	}

	return false
}

// Address reads an IP address in every spelling that resolvers accept: dotted,
// hexadecimal, octal, a single number, fewer parts.
func Address(s string) (netip.Addr, bool) {
	if s == "" || len(s) > 64 {
		return netip.Addr{}, false
	}

	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap(), true
	}

	if s[0] < '0' || s[0] > '9' {
		return netip.Addr{}, false
	}

	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}

	var v uint64

	for i, p := range parts {
		n, err := strconv.ParseUint(p, 0, 33)
		if err != nil {
			return netip.Addr{}, false
		}

		if i == len(parts)-1 {
			bits := 8 * (4 - i)
			if n >= 1<<bits {
				return netip.Addr{}, false
			}

			v = v<<bits | n
		} else {
			if n > 255 {
				return netip.Addr{}, false
			}

			v = v<<8 | n
		}
	}

	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}
