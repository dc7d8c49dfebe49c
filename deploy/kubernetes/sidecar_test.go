package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// manifest reads sidecar.yaml into the types of the Kubernetes API; a field
// that Kubernetes does not know is an error.
func manifest(t *testing.T) (corev1.ConfigMap, appsv1.Deployment) {
	t.Helper()
	data, err := os.ReadFile("sidecar.yaml")
	require.NoError(t, err)
	documents := strings.Split(string(data), "\n---\n")
	require.Len(t, documents, 2)
	var config corev1.ConfigMap
	var app appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[0]), &config))
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[1]), &app))
	return config, app
}

// TestSidecarIsNativeAndFirst: under containers the restart policy is ignored
// and a Job never ends (RedHatInsights/clowder PR 1783); behind another init
// container that one runs unguarded (linkerd/linkerd2 PR 11465); without a
// startup probe the agent calls before there is anyone to answer
// (openservicemesh/osm#2316, kubernetes/kubernetes#65502).
func TestSidecarIsNativeAndFirst(t *testing.T) {
	_, app := manifest(t)
	pod := app.Spec.Template.Spec
	require.NotEmpty(t, pod.InitContainers)
	sidecar := pod.InitContainers[0]
	require.Equal(t, "e2bguard", sidecar.Name)
	require.NotNil(t, sidecar.RestartPolicy)
	assert.Equal(t, corev1.ContainerRestartPolicyAlways, *sidecar.RestartPolicy)
	for _, c := range pod.Containers {
		assert.Nil(t, c.RestartPolicy, "the policy is for init containers only")
		assert.NotContains(t, c.Image, "e2bguard")
	}
	require.NotNil(t, sidecar.StartupProbe)
	require.NotNil(t, sidecar.StartupProbe.HTTPGet)
	assert.Equal(t, "/healthz", sidecar.StartupProbe.HTTPGet.Path)
	assert.Empty(t, sidecar.StartupProbe.HTTPGet.Host, "the node's loopback is not the pod's")
	require.NotNil(t, pod.TerminationGracePeriodSeconds)
	assert.Greater(t, *pod.TerminationGracePeriodSeconds, int64(60), "longer than grace_period")
}

func TestSidecarHasNoPrivilegeAndSharesNoSecret(t *testing.T) {
	_, app := manifest(t)
	pod := app.Spec.Template.Spec
	sidecar, agent := pod.InitContainers[0], pod.Containers[0]

	require.NotNil(t, pod.SecurityContext)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
	assert.False(t, *pod.AutomountServiceAccountToken)
	require.NotNil(t, sidecar.SecurityContext)
	assert.True(t, *sidecar.SecurityContext.ReadOnlyRootFilesystem)
	assert.False(t, *sidecar.SecurityContext.AllowPrivilegeEscalation)
	assert.Equal(t, []corev1.Capability{"ALL"}, sidecar.SecurityContext.Capabilities.Drop)
	assert.NotEqual(t, *sidecar.SecurityContext.RunAsUser, *agent.SecurityContext.RunAsUser)

	private := map[string]bool{}
	for _, m := range sidecar.VolumeMounts {
		private[m.Name] = true
	}
	for _, c := range append(pod.InitContainers[1:], pod.Containers...) {
		for _, m := range c.VolumeMounts {
			assert.False(t, private[m.Name], "%s mounts %s: whoever has the admin socket can switch the guard off", c.Name, m.Name)
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				assert.NotEqual(t, "e2b-api-key", e.ValueFrom.SecretKeyRef.Key, "%s holds E2B's own key", c.Name)
			}
		}
		assert.Empty(t, c.EnvFrom, "a whole secret would hold E2B's own key")
	}
	assert.Nil(t, pod.ShareProcessNamespace, "a shared process namespace shares environment variables")
}

// TestSidecarRunsAsWritten starts the container's command with its
// configuration, with other ports and folders, and calls it as the agent would.
func TestSidecarRunsAsWritten(t *testing.T) {
	config, app := manifest(t)
	pod := app.Spec.Template.Spec
	sidecar, agent := pod.InitContainers[0], pod.Containers[0]
	secrets := map[string]string{"e2b-api-key": "e2b_0000000000000000", "client-key": "e2b_aaaaaaaaaaaaaaaa", "seal-key": strings.Repeat("5e", 32)}

	// The folders of the container and its ports, mapped to this machine.
	dir := t.TempDir()
	ports := map[string]string{"8080": freePort(t), "8081": freePort(t)}
	var mounts []string
	for _, m := range sidecar.VolumeMounts {
		mounts = append(mounts, m.MountPath+"/", filepath.Join(dir, m.Name)+"/")
	}
	local := func(text string) string {
		text = strings.NewReplacer(mounts...).Replace(text)
		return regexp.MustCompile(`\b808[01]\b`).ReplaceAllStringFunc(text, func(p string) string { return ports[p] })
	}
	for _, m := range sidecar.VolumeMounts {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, m.Name), 0o700))
	}
	for name, text := range config.Data {
		require.NoError(t, os.WriteFile(local("/etc/e2bguard/"+name), []byte(local(text)), 0o600))
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	args := make([]string, len(sidecar.Args))
	for i, a := range sidecar.Args {
		args[i] = local(a)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Env = append(environment(t, sidecar, secrets, local), "PATH=/usr/bin", "TMPDIR="+filepath.Join(dir, "e2bguard-tmp"),
		"XDG_DATA_HOME="+dir+"/data", "XDG_CONFIG_HOME="+dir+"/config")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { stop(); <-ended }()

	probe := sidecar.StartupProbe.HTTPGet
	port := probe.Port.IntValue()
	for _, p := range sidecar.Ports {
		if p.Name == probe.Port.StrVal {
			port = int(p.ContainerPort)
		}
	}
	healthy := fmt.Sprintf("http://127.0.0.1:%s%s", ports[fmt.Sprint(port)], probe.Path)
	require.Eventually(t, func() bool {
		resp, err := http.Get(healthy)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 30*time.Second, 20*time.Millisecond, "the startup probe never succeeds")

	env := map[string]string{}
	for _, e := range environment(t, agent, secrets, local) {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	assert.Equal(t, env["E2B_API_URL"], env["E2B_SANDBOX_URL"])
	status, _ := get(t, env["E2B_API_URL"]+"/v2/sandboxes", "e2b_wrong")
	assert.Equal(t, http.StatusUnauthorized, status, "a wrong key must not get through")
	status, body := get(t, env["E2B_API_URL"]+"/no/such/operation", env["E2B_API_KEY"])
	assert.Equal(t, http.StatusForbidden, status)
	assert.Contains(t, body, "e2bguard", "the refusal must be the gateway's")

	// A second process cannot change the configuration: no TCP port is an admin
	// endpoint, Caddy's default included.
	for _, port := range append(listening(t, cmd.Process.Pid), "2019") {
		resp, err := http.Post("http://127.0.0.1:"+port+"/load", "application/json", strings.NewReader(`{"admin":{"disabled":true}}`))
		if err == nil {
			resp.Body.Close()
			assert.NotEqual(t, http.StatusOK, resp.StatusCode, "port %s takes a configuration", port)
		}
	}
	status, _ = get(t, healthy, "")
	require.Equal(t, http.StatusOK, status, "the configuration was replaced")
	socket := local("/run/e2bguard/admin.sock")
	info, err := os.Stat(socket)
	require.NoError(t, err)
	assert.Zero(t, info.Mode().Perm()&0o077, "others can reach the admin socket: %v", info.Mode())

	// Its own container can.
	reload := exec.CommandContext(ctx, binary(t), "reload", "--config", args[2], "--adapter", "caddyfile", "--address", "unix/"+socket)
	reload.Env = cmd.Env
	out, err := reload.CombinedOutput()
	require.NoError(t, err, string(out))
}

// environment is a container's env, its secrets resolved.
func environment(t *testing.T, c corev1.Container, secrets map[string]string, local func(string) string) []string {
	t.Helper()
	var env []string
	for _, e := range c.Env {
		value := local(e.Value)
		if e.ValueFrom != nil {
			require.NotNil(t, e.ValueFrom.SecretKeyRef)
			require.Contains(t, secrets, e.ValueFrom.SecretKeyRef.Key)
			value = secrets[e.ValueFrom.SecretKeyRef.Key]
		}
		env = append(env, e.Name+"="+value)
	}
	return env
}

func get(t *testing.T, url, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	req.Header.Set("X-API-Key", key)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// listening is the TCP ports a process listens on.
func listening(t *testing.T, pid int) []string {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	inodes := map[string]bool{}
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && strings.HasPrefix(target, "socket:[") {
			inodes[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	var ports []string
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		require.NoError(t, err)
		for _, line := range strings.Split(string(data), "\n")[1:] {
			fields := strings.Fields(line)
			const listen = "0A"
			if len(fields) > 9 && fields[3] == listen && inodes[fields[9]] {
				var port int
				_, err := fmt.Sscanf(fields[1][strings.LastIndex(fields[1], ":")+1:], "%X", &port)
				require.NoError(t, err)
				ports = append(ports, fmt.Sprint(port))
			}
		}
	}
	require.Len(t, ports, 2, "the health port and the agent's")
	return ports
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	return port
}

// binary is the e2bguard binary: $E2BGUARD_BIN, else one built for the test.
func binary(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("E2BGUARD_BIN"); given != "" {
		return given
	}
	built := filepath.Join(t.TempDir(), "e2bguard")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "nobadger,nomysql,nopgx", "-ldflags", "-s -w", "-o", built, "../../cmd/e2bguard")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return built
}
