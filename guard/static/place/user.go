package place

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// secretBelowHome are files and trees with credentials, below a home.
var secretBelowHome = []string{
	".aws/credentials", ".aws/sso/cache", ".aws/cli/cache", ".docker/config.json", ".kube/config", ".netrc", ".pypirc", ".git-credentials",
	".config/gcloud", ".azure", ".config/gh/hosts.yml", ".config/hub", ".gnupg", ".password-store", ".local/share/keyrings",
	".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".mozilla", ".thunderbird", ".bitcoin", ".ethereum", ".electrum",
	".monero", ".config/solana", ".config/Exodus", ".vault-token", ".terraform.d/credentials.tfrc.json", ".boto", ".s3cfg", ".pgpass",
	".my.cnf", ".config/rclone", ".config/doctl", ".config/op", ".oci", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
	".fly/config.yml", ".config/heroku", ".config/fly", ".config/Signal", ".config/discord", ".config/Slack", ".ssh/id_rsa", ".snowflake",
	".claude/.credentials.json", ".codex/auth.json", ".config/containers/auth.json", ".config/Bitwarden", ".lastpass",
	"Library/Keychains", "Library/Application Support/Exodus", "Library/Application Support/Google/Chrome", "Library/Cookies",
	"Library/Application Support/Firefox", "snap/firefox", ".config/microsoft-edge", ".config/opera", ".config/vivaldi", ".metamask",
	".local/share/kwalletd", ".minikube/profiles", ".helm/registry", ".databrickscfg", ".kaggle/kaggle.json", ".huggingface/token",
	".cache/huggingface/token", ".config/atuin", ".dockercfg",
}

// HoldsSecrets says whether a folder is one in which a file with credentials is
// kept, so that whoever moves it has them.
func HoldsSecrets(p string) bool {
	rest, ok := home(p)
	if !ok {
		return false
	}

	for _, s := range secretBelowHome {
		if rest == "" || strings.HasPrefix(s, rest+"/") {
			return true
		}
	}

	return false
}

// runningBelowHome are files that run by themselves, below a home.
var runningBelowHome = setOf(".bashrc", ".bash_profile", ".bash_login", ".profile", ".bash_logout", ".bash_aliases", ".zshrc", ".zshenv",
	".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".ssh/rc",
	".ssh/environment", ".config/fish/config.fish", ".inputrc", ".pythonrc", ".pythonrc.py", ".gdbinit", ".config/gdb/gdbinit", ".lldbinit",
	".vimrc", ".exrc", ".config/nvim/init.vim", ".config/nvim/init.lua", ".emacs", ".Rprofile", ".irbrc", ".pryrc", ".gitconfig", ".config/git/config",
	".tmux.conf", ".screenrc", ".nanorc", ".npmrc", ".config/pip/pip.conf", ".pip/pip.conf", ".pam_environment", ".psqlrc", ".sqliterc", ".node_repl_history",
	".ssh/config")

// startupBelowHome are trees of the same kind that no ordinary work writes.
var startupBelowHome = []string{".config/autostart", ".config/systemd/user", ".config/upstart", ".kde/Autostart", ".config/plasma-workspace",
	"Library/LaunchAgents", ".local/share/systemd"}

var historyFiles = setOf(".bash_history", ".zsh_history", ".sh_history", ".history", ".ash_history", ".mysql_history",
	".psql_history", ".python_history", ".lesshst", ".local/share/fish/fish_history")

// byHome classifies paths below a home.
func byHome(p string) Class {
	rest, ok := home(p)
	if !ok {
		return 0
	}

	var c Class

	if rest == "" || isGlobAll(rest) {
		return Tree | Vital
	}

	for _, s := range secretBelowHome {
		if under(rest, s) {
			c |= Secret

			break
		}
	}

	switch {
	case under(rest, ".ssh"):
		c |= ssh(strings.TrimPrefix(strings.TrimPrefix(rest, ".ssh"), "/"))
	case runningBelowHome[rest]:
		c |= SelfRunning
	case historyFiles[rest]:
		c |= Log | Private
	case under(rest, ".ipython/profile_default/startup"), under(rest, ".jupyter"):
		c |= SelfRunning
	}

	if underAny(rest, startupBelowHome) {
		c |= SelfRunning | Startup
	}

	switch rest {
	case ".aws", ".docker", ".kube", ".config", ".local", ".config/*", ".aws/config", ".npmrc", ".Renviron", ".yarnrc.yml", ".m2/settings.xml", ".gradle/gradle.properties":
		c |= Private
	case ".bashrc", ".profile", ".bash_profile", ".zshrc":
		c |= Vital
	}

	return c
}

// ssh classifies what is below ~/.ssh.
func ssh(rest string) Class {
	switch {
	case rest == "authorized_keys", rest == "authorized_keys2":
		return AuthFile | SelfRunning | Vital
	case rest == "" || isGlobAll(rest):
		return Secret | Vital
	case rest == "rc", rest == "config", rest == "environment":
		return SelfRunning
	case rest == "known_hosts", strings.HasSuffix(rest, ".pub"), strings.HasPrefix(rest, "known_hosts"):
		return 0
	case strings.HasPrefix(rest, "id_"), strings.HasSuffix(rest, ".pem"), strings.HasSuffix(rest, ".key"), strings.Contains(rest, "*"),
		strings.HasPrefix(rest, effect.HoleText):
		return Secret | Vital
	}

	return Private
}

var secretNames = setOf("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "wallet.dat", "logins.json", ".git-credentials", ".pypirc", ".netrc", "shadow.bak", "ntds.dit", "keepass.kdbx", "terraform.tfstate",
	"kubeconfig", ".pgpass", "credentials.tfrc.json", "exodus.wallet", "master.key", "keystore.jks")

var privateNames = setOf(".env", ".env.local", ".env.production", ".env.development", "credentials", "credentials.json",
	"secrets.json", "secrets.yaml", "secrets.yml", "secrets.toml", "service-account.json", "service_account.json", "id_rsa", "passwords.txt",
	"config.json.enc", "htpasswd", ".htpasswd", "auth.json", "token.json", "wp-config.php")

// browserStores are the files in which browsers keep passwords, cookies and
// cards. The first kind has names of its own; the second is told by the place.
var (
	browserStores = setOf("Login Data", "Login Data For Account", "key4.db", "key3.db", "cookies.sqlite", "signons.sqlite", "formhistory.sqlite")
	browserFiles  = setOf("logins.json", "Cookies", "Web Data", "Local State", "cert9.db", "Account Web Data", "Login Data-journal", "Cookies-journal")
)

// browserPlaces are parts of paths at which browsers keep profiles.
var browserPlaces = []string{"google/chrome", "google-chrome", "chromium", "bravesoftware", "brave-browser", "microsoft/edge", "microsoft-edge", "mozilla/", "firefox/profiles", ".mozilla",
	"opera software", "vivaldi", "yandexbrowser", "user data/", "epic privacy browser", "librewolf", "thunderbird"}

// Browser says whether a path, in any system's spelling, is a file in which a
// browser keeps credentials.
func Browser(p string) bool {
	p = strings.ReplaceAll(p, `\`, "/")
	base := path.Base(p)

	if browserStores[base] {
		return true
	}

	if !browserFiles[base] {
		return false
	}

	p = strings.ToLower(p)
	for _, b := range browserPlaces {
		if strings.Contains(p, b) {
			return true
		}
	}

	return false
}

// byName classifies by the file's own name, wherever it is.
func byName(p string) Class {
	base := path.Base(p)

	var c Class

	switch {
	case Browser(p):
		c |= Secret
	case secretNames[base]:
		c |= Private
	case privateNames[base], strings.HasPrefix(base, ".env."):
		c |= Private
	}

	switch ext := path.Ext(base); ext {
	case ".pem", ".key", ".p12", ".pfx", ".kdbx", ".ppk", ".keystore", ".jks", ".asc", ".gpg", ".wallet":
		c |= Private
	case ".pth":
		c |= SelfRunning
	}

	if strings.Contains(p, "/secrets/") || strings.Contains(p, "/credentials/") {
		c |= Private
	}

	switch base {
	case "sitecustomize.py", "usercustomize.py":
		c |= SelfRunning
	case "release_agent", "notify_on_release", "uevent_helper":
		c |= HostEscape
	}

	if strings.Contains(p, ".git/hooks/") && !strings.HasSuffix(base, ".sample") {
		c |= SelfRunning
	}

	switch {
	case !strings.HasPrefix(p, "/") && strings.HasPrefix(p, ".ssh/"):
		c |= ssh(strings.TrimPrefix(p, ".ssh/"))
	case !strings.HasPrefix(p, "/") && strings.HasPrefix(p, ".aws/credentials"):
		c |= Private
	}

	return c
}
