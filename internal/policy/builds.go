package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Builds says what templates may be built from, and how large their sandboxes
// may be. The zero Builds allows none.
type Builds struct {
	// Images lists container images: "python:3.12-slim" is that tag, "python"
	// every tag and digest, "ghcr.io/acme/*" every image below.
	Images []string
	// Templates lists templates of E2B, each exactly as in Templates.Allow.
	Templates []string
	// CPU is the most processors, MemoryMB the most MiB of memory; 0 for E2B's
	// own limits.
	CPU, MemoryMB int64
}

// Open reports whether anything may be built.
func (b Builds) Open() bool { return len(b.Images)+len(b.Templates) > 0 }

// ErrBuildsClosed says why nothing may be built, and who can change that.
var ErrBuildsClosed = errors.New("building templates is closed here; start one of the templates there are, or ask the operator for the option builds")

// Validate reports entries that are no images or templates.
func (b Builds) Validate() error {
	var problems []error
	for _, entry := range b.Images {
		if _, err := parseImage(strings.TrimSuffix(entry, "/*")); err != nil || strings.Count(entry, "*") > 0 && !strings.HasSuffix(entry, "/*") {
			problems = append(problems, fmt.Errorf("%q is no image: write one such as python:3.12-slim, python for all its tags, or ghcr.io/acme/* for all below", entry))
		}
	}
	if _, err := ParseTemplates(b.Templates); err != nil {
		problems = append(problems, err)
	}
	if b.CPU < 0 || b.MemoryMB < 0 {
		problems = append(problems, errors.New("cpu and memory must not be negative"))
	}
	return errors.Join(problems...)
}

// CheckImage returns an error that says what to do if no template may be built
// from an image.
func (b Builds) CheckImage(ref string) error {
	asked, err := parseImage(ref)
	if err != nil {
		return err
	}
	for _, entry := range b.Images {
		below, isPrefix := strings.CutSuffix(entry, "/*")
		allowed, err := parseImage(below)
		if err == nil && allowed.covers(asked, isPrefix) {
			return nil
		}
	}
	return fmt.Errorf("image %q is not one that templates may be built from here%s; use one of them, or ask the operator to add it to the option builds", ref, listed(b.Images))
}

// CheckTemplate is CheckImage for a template of E2B.
func (b Builds) CheckTemplate(id string) error {
	if len(b.Templates) > 0 && (Templates{Allow: b.Templates}).Check(id) == nil {
		return nil
	}
	return fmt.Errorf("template %q is not one that templates may be built from here%s; use one of them, or ask the operator to add it to the option builds", id, listed(b.Templates))
}

func listed(names []string) string {
	if len(names) == 0 {
		return " (none is)"
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// image is a reference in the one form that is compared.
type image struct {
	// name is registry and repository: docker.io/library/python.
	name        string
	tag, digest string
}

var (
	imagePath   = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	imageHost   = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)
	imageTag    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// dockerHub are the names of the registry that goes without saying.
var dockerHub = []string{"docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// parseImage reads a reference as registries' clients do: what stands before the
// first slash is a registry if it has a dot or a port.
func parseImage(ref string) (image, error) {
	bad := fmt.Errorf("%q is no image: write one such as python:3.12-slim or ghcr.io/acme/base:1", ref)
	var out image
	rest, digest, pinned := strings.Cut(ref, "@")
	if pinned && !imageDigest.MatchString(digest) {
		return image{}, bad
	}
	out.digest = digest
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		rest, out.tag = rest[:i], rest[i+1:]
		if !imageTag.MatchString(out.tag) {
			return image{}, bad
		}
	}
	registry, path := "docker.io", rest
	if host, below, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(host, ".:") || strings.EqualFold(host, "localhost")) {
		registry, path = strings.ToLower(host), below
	}
	if slices.Contains(dockerHub, registry) {
		registry = "docker.io"
		if !strings.Contains(path, "/") {
			path = "library/" + path
		}
	}
	if !imageHost.MatchString(registry) || !imagePath.MatchString(path) {
		return image{}, bad
	}
	out.name = registry + "/" + path
	return out, nil
}

// covers reports whether an entry of a list allows an image. What a registry
// gives for a digest is not what it gives for the tag before it.
func (i image) covers(asked image, isPrefix bool) bool {
	if isPrefix {
		return strings.HasPrefix(asked.name, strings.Replace(i.name, "docker.io/library/", "docker.io/", 1)+"/")
	}
	if i.name != asked.name {
		return false
	}
	switch {
	case i.digest != "":
		return asked.digest == i.digest
	case i.tag != "":
		return asked.digest == "" && asked.tag == i.tag
	default:
		return true
	}
}
