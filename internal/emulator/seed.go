package emulator

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// seedDirs are the folders a new sandbox has.
var seedDirs = []string{
	"home/user", "root", "tmp", "etc/mcp-gateway", "etc/profile.d", "mnt", "opt", "srv",
	"opt/e2b/bin", "usr", "var/log", "var/tmp", "code",
}

// seed fills a sandbox's folder with what a fresh image has, or with a copy of
// from.
func seed(root, from string) error {
	if from != "" {
		return copyTree(from, root)
	}
	for _, dir := range seedDirs {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	// A login shell's /etc/profile resets PATH; the tools of the machine the
	// emulator runs on must stay reachable.
	profile := "# ~/.profile: executed by login shells.\n" +
		"PATH=\"$PATH\":" + shellQuote(os.Getenv("PATH")+":/opt/e2b/bin:"+filepath.Join(root, "opt/e2b/bin")) + "\nexport PATH\n" +
		"if [ -n \"$BASH_VERSION\" ] && [ -f \"$HOME/.bashrc\" ]; then . \"$HOME/.bashrc\"; fi\n"
	files := map[string]string{
		"home/user/.profile":     profile,
		"home/user/.bashrc":      "# ~/.bashrc: executed by interactive shells.\n",
		"home/user/.bash_logout": "# ~/.bash_logout: executed when a login shell exits.\n",
		"root/.profile":          profile,
		"root/.bashrc":           "# ~/.bashrc: executed by interactive shells.\n",
		"etc/passwd":             "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n",
		"etc/group":              "root:x:0:\nuser:x:1000:\n",
		"etc/hostname":           "e2b.local\n",
		"etc/hosts":              "127.0.0.1 localhost\n",
		"etc/os-release":         "PRETTY_NAME=\"E2B emulator\"\nNAME=\"E2B emulator\"\nID=e2b-emulator\n",
		"etc/mcp-gateway/.token": newUUID(),
		"etc/resolv.conf":        "nameserver 127.0.0.1\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, shared := range []string{"tmp", "var/tmp", "code"} {
		if err := os.Chmod(filepath.Join(root, shared), 0o777|fs.ModeSticky); err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 {
		return nil
	}
	id := int(accounts[defaultUser].uid)
	return filepath.WalkDir(filepath.Join(root, "home/user"), func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, id, id)
	})
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// copyTree copies files, folders and symbolic links; anything else (sockets,
// pipes) has no meaning in another sandbox.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // Removed while we looked.
			}
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		info, err := d.Info()
		if err != nil {
			return nil // Removed while we looked.
		}
		switch {
		case d.IsDir():
			err = errors.Join(os.MkdirAll(dst, 0o700), os.Chmod(dst, info.Mode()))
		case d.Type()&fs.ModeSymlink != 0:
			var link string
			if link, err = os.Readlink(path); err == nil {
				err = os.Symlink(link, dst)
			}
		case d.Type().IsRegular():
			err = copyFile(path, dst, info.Mode().Perm())
		default:
			return nil
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && err == nil && os.Geteuid() == 0 {
			err = os.Lchown(dst, int(stat.Uid), int(stat.Gid))
		}
		return err
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err := errors.Join(err, dst.Close()); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}

// addMCPGateway gives a sandbox the program that the SDK starts when a sandbox
// is created with MCP servers. It starts none: the emulator answers itself.
func addMCPGateway(root string) error {
	return os.WriteFile(filepath.Join(root, "opt/e2b/bin/mcp-gateway"), []byte("#!/bin/sh\n"+
		"[ -z \"$GATEWAY_ACCESS_TOKEN\" ] || printf %s \"$GATEWAY_ACCESS_TOKEN\" >\"${0%/opt/*}/etc/mcp-gateway/.token\"\n"), 0o755)
}
