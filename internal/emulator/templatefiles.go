package emulator

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var filesHashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// templateFile says where a COPY source is to be sent, and whether it is there
// already. Source: the handler of this route in E2B's API.
func (e *Emulator) templateFile(r *http.Request, _ []byte) (int, any, error) {
	return e.oneTemplate(r, func(t *template) (int, any, error) {
		hash := r.PathValue("hash")
		if !filesHashPattern.MatchString(hash) {
			return 0, nil, badRequest("Invalid files hash")
		}
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		url := scheme + "://" + r.Host + "/__upload/" + t.id + "/" + hash + "?X-Signature=emulator"
		return http.StatusCreated, map[string]any{"present": e.templates.files[hash], "url": url}, nil
	})
}

// receiveTemplateFile is the bucket: no key, the URL is the credential. It wants to
// know the length, as S3 does. What is in the archive is recorded file by file.
func (e *Emulator) receiveTemplateFile(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength < 0 {
		http.Error(w, "<Error><Code>NotImplemented</Code></Error>", http.StatusNotImplemented)
		return
	}
	pending := pendingOf(r.Context())
	description, _ := json.Marshal(map[string]int64{"bytes": r.ContentLength}) // An integer always marshals.
	pending.commit(description)
	unpacked := unpack(r.Body, pending)
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if unpacked != nil {
		// The bucket takes anything; the build would fail.
		pending.file(FileRecord{Path: "?", Head: unpacked.Error()})
	}
	e.templates.mu.Lock()
	defer e.templates.mu.Unlock()
	e.templates.files[r.PathValue("hash")] = true
	w.WriteHeader(http.StatusOK)
}

// unpack records what tar would make of an archive: files, and links as "path ->
// target".
func unpack(body io.Reader, pending *pendingRecord) error {
	in := bufio.NewReader(body)
	var plain io.Reader = in
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("unpacking: %w", err)
		}
		plain = z
	}
	for tr := tar.NewReader(plain); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking: %w", err)
		}
		record := FileRecord{Path: h.Name, Size: h.Size}
		switch h.Typeflag {
		case tar.TypeReg:
			digest, head := sha256.New(), new(strings.Builder)
			if _, err := io.Copy(digest, io.TeeReader(io.LimitReader(tr, headBytes), head)); err != nil {
				return fmt.Errorf("unpacking: %w", err)
			}
			if _, err := io.Copy(digest, tr); err != nil {
				return fmt.Errorf("unpacking: %w", err)
			}
			record.Head, record.SHA256 = head.String(), hex.EncodeToString(digest.Sum(nil))
		case tar.TypeSymlink, tar.TypeLink:
			record.Path += " -> " + h.Linkname
		}
		pending.file(record)
	}
}

const headBytes = 1 << 10

// startBuild runs nothing, but a COPY step whose files nobody sent fails.
func (e *Emulator) startBuild(r *http.Request, body []byte) (int, any, error) {
	var b struct {
		Steps []struct {
			Type      string `json:"type"`
			FilesHash string `json:"filesHash"`
		} `json:"steps"`
	}
	if err := parse(body, &b); err != nil {
		return 0, nil, err
	}
	return e.oneTemplate(r, func(t *template) (int, any, error) {
		if r.PathValue("build") != t.build {
			return 0, nil, notFound("build '%s' not found", r.PathValue("build"))
		}
		t.failed = nil
		for i, step := range b.Steps {
			if step.Type == "COPY" && !e.templates.files[step.FilesHash] && t.failed == nil {
				t.failed = &buildFailure{Message: "failed to open files object from storage", Step: strconv.Itoa(i + 1)}
			}
		}
		return http.StatusAccepted, nil, nil
	})
}
