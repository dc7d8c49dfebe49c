package gateway

import (
	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// mounted is what is known, after the call, of the volumes that are mounted in a
// sandbox: what was asked for, or what the sandbox that it is a copy of has.
func (c *call) mounted(info control.SandboxInfo) (volumes []string, known bool) {
	switch c.target.Row.Operation {
	case route.SandboxCreate:
		return c.msg.(controlMessage).Volumes(), true
	case route.SandboxFork:
		source, _ := c.g.state.lookup(c.target.Params["sandboxID"])
		return source.volumes, source.volumesKnown
	default:
		return info.Volumes, info.VolumesKnown
	}
}

// rememberedFile is what a file of the sandbox holds, as far as that is certain.
// Where a volume is, or may be, mounted nothing is: another sandbox, or a call for
// the volume's content, may have written it since.
func (c *call) rememberedFile(path string) (string, files.Content) {
	if c.g.cfg.Policy.Volumes.Open {
		if sb, _ := c.g.state.lookup(c.target.Sandbox); !sb.volumesKnown || len(sb.volumes) > 0 {
			return "", files.Unseen
		}
	}
	return c.g.state.files.lookup(c.target.Sandbox, path)
}

// volumeKey is a volume's place among the sandboxes: for what was secret in those
// that it was mounted in, and for what was run there.
func volumeKey(name string) string { return "volume/" + name }

// addVolumeSecrets notes secrets that programs may write to volumes. Without keys
// of the gateway's, two accounts may have a volume of one name each, and must not
// find out by what is hidden what the other's secrets are.
func (g *Gateway) addVolumeSecrets(volumes []string, secrets []redact.Secret) {
	if !g.vault() {
		return
	}
	for _, name := range volumes {
		g.state.addSecrets(volumeKey(name), secrets)
	}
}

// wallet is the key of the secrets that are hidden in the call's answer; "" for
// none but the call's own.
func (c *call) wallet() string {
	if c.volume.name != "" && c.g.vault() {
		return volumeKey(c.volume.name)
	}
	return c.outcome.Sandbox
}
