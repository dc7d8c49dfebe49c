package files

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAVolumeIsMountedOnlyWhereNothingRunsByItself(t *testing.T) {
	for _, p := range []string{
		"/", "/etc", "/etc/profile.d", "/bin", "/usr", "/usr/bin", "/usr/local", "/usr/local/bin", "/usr/local/share", "/usr/share", "/usr/lib/python3/dist-packages",
		"/lib", "/lib64", "/proc", "/proc/1", "/sys", "/dev", "/dev/shm", "/run", "/run/user/1000", "/var", "/var/lib", "/var/lib/e2b", "/var/spool/cron", "/snap",
		"/home", "/home/user", "/root", "/root/.server", "/root/.jupyter", "/home/user/.ssh", "/home/user/.config", "/home/user/.config/systemd/user", "/home/user/.local",
		"/home/user/.local/share", "/home/user/.local/bin", "/home/user/bin", "/home/user/go", "/home/user/go/bin", "/home/user/.cargo", "/home/user/.bun", "/home/user/.ipython",
		"/home/user/app/.git", "/home/user/app/.git/hooks", "/home/user/app/.husky", "/home/user/app/node_modules", "/home/user/.docker", "/home/user/.bashrc", "/srv/x/.m2",
	} {
		why, ok := MountPoint(p)
		require.False(t, ok, p)
		require.NotEmpty(t, why, p)
	}
	for _, p := range []string{
		"/mnt/data", "/mnt", "/data", "/workspace", "/opt/models", "/srv", "/tmp/x", "/home/user/data", "/home/user/app", "/home/user/.cache/huggingface", "/home/user/.cache",
		"/home/user/src/go", "/var/www", "/var/tmp/x", "/usr/src/app", "/usr/share/models", "/media/etc", "/mnt/bin", "/root/project",
	} {
		why, ok := MountPoint(p)
		require.True(t, ok, "%s: %s", p, why)
	}
}

// What is written to a volume is judged without its mount point, so whatever runs
// by itself below one that may be used must show in the rest of the path.
func TestAMountPointHidesNothingThatRunsByItself(t *testing.T) {
	for _, f := range folders {
		for i := range len(f.path) + 1 {
			if i > 0 && i < len(f.path) && f.path[i] != '/' {
				continue
			}
			mount := "/mnt/x"
			if i > 0 {
				mount += "/" + f.path[:i]
			}
			_, ok := MountPoint(mount)
			require.Equal(t, i == 0, ok, mount)
		}
		_, runs := SelfRunning("/mnt/volume/" + f.path)
		require.True(t, runs, f.path)
	}
}
