package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	"github.com/e2bguard/e2bguard/internal/e2b/files"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// Bounds of what one subject brings along.
const (
	// maxJoinRounds is how far it goes: a file that runs a file that runs a file.
	maxJoinRounds = 4
	// maxJoinedFiles and maxJoinedBytes bound the files that are judged with it.
	maxJoinedFiles, maxJoinedBytes = 32, 1 << 20
	// joinTimeout is how long all files together may take to be read.
	joinTimeout = 300 * time.Millisecond
	// joinsAtOnce is how many are looked for at a time, and maxLookups how many in
	// all for one call.
	joinsAtOnce, maxLookups = 8, 128
)

// withFiles adds to a subject the files that its text runs or loads: from memory
// if they came through the gateway and are certain to be as they were, else as
// the sandbox has them now. What cannot be had is named in a label.
func (c *call) withFiles(ctx context.Context, s guard.Subject) guard.Subject {
	if c.target.Sandbox == "" && c.program == nil || s.Kind != guard.KindCommand && s.Kind != guard.KindCode && s.Kind != guard.KindInput {
		return s
	}
	j := &join{c: c, found: map[string]*foundFile{}}
	bytes := 0
	var unseen []string
	miss := func(path string) {
		if !slices.Contains(unseen, path) {
			unseen = append(unseen, path)
		}
	}
	asked := map[string]bool{}
	runs, whole := static.Runs(s)
	if len(runs) > 0 && s.Labels[guard.LabelCwd] == "" && c.target.Plane == route.Envd {
		// Most sandboxes' is the home.
		if s.Labels = withLabel(s.Labels, guard.LabelCwd, c.workDir(ctx)); s.Labels[guard.LabelCwd] != "" {
			runs, whole = static.Runs(s)
		}
	}
	for range maxJoinRounds {
		if !whole {
			miss(unseenRest)
		}
		var wanted []static.Run
		for _, run := range runs {
			if key := run.Paths[0]; !asked[key] {
				asked[key] = true
				wanted = append(wanted, run)
			}
		}
		if len(wanted) == 0 {
			return labelUnseen(s, unseen)
		}
		c.g.state.files.ran(c.target.Sandbox, wanted)
		j.read(ctx, wanted)
		for _, run := range wanted {
			file, path, content := j.first(run)
			switch {
			case content == files.Text && len(s.Files) < maxJoinedFiles && bytes+len(file) <= maxJoinedBytes:
				bytes += len(file)
				s.Files = append(slices.Clip(s.Files), guard.File{Path: path, Text: file})
			case content == files.Binary, content == files.Absent && run.Optional, run.Library && content != files.Text:
			default:
				miss(path)
			}
		}
		runs, whole = static.Runs(s)
	}
	for _, run := range runs { // deeper than is followed
		if !run.Optional && !asked[run.Paths[0]] {
			miss(run.Paths[0])
		}
	}
	return labelUnseen(s, unseen)
}

func labelUnseen(s guard.Subject, unseen []string) guard.Subject {
	if len(unseen) > 0 {
		s.Labels[guard.LabelUnseen] = strings.Join(unseen, ",")
	}
	return s
}

// unseenRest stands for files that may be named in what was not read to its end.
const unseenRest = "*"

// withLabel adds a label to those of a subject, which may be others' too; an empty
// one and the default folder of a sandbox say nothing.
func withLabel(labels map[string]string, key, value string) map[string]string {
	if value == "" || value == defaultFolder {
		return labels
	}
	out := map[string]string{key: value}
	for k, v := range labels {
		out[k] = v
	}
	return out
}

// defaultFolder is the home of E2B's default user.
const defaultFolder = "/home/user"

// workDir is the folder in which commands of the sandbox start that name none; ""
// where that is the home.
func (c *call) workDir(ctx context.Context) string {
	memory, user := c.g.state.files, c.user()
	if dir, known := memory.workDir(c.target.Sandbox, user); known {
		return dir
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	var answer filesystempb.StatResponse
	// envd takes an empty path for the folder of the template, or else the home.
	if err := c.askEnvd(ctx, "/filesystem.Filesystem/Stat", &filesystempb.StatRequest{}, &answer); err != nil {
		return ""
	}
	dir := answer.GetEntry().GetPath()
	if dir == files.Absolute("", user) {
		dir = ""
	}
	memory.setWorkDir(c.target.Sandbox, user, dir)
	return dir
}

// join is the search for the files of one subject.
type join struct {
	c     *call
	until time.Time
	found map[string]*foundFile
}

type foundFile struct {
	text    string
	content files.Content
}

// read looks for all the paths of some runs at a time.
func (j *join) read(ctx context.Context, wanted []static.Run) {
	var ask []string
	for _, run := range wanted {
		for _, path := range run.Paths {
			if _, known := j.found[path]; known {
				continue
			}
			f := new(foundFile)
			j.found[path] = f
			if j.c.program != nil { // a new sandbox has what comes with the program
				f.text, f.content = j.c.program.file(path)
				continue
			}
			f.text, f.content = j.c.rememberedFile(path)
			if f.content == files.Unseen && !run.Library && j.c.lookups.Add(1) <= maxLookups {
				ask = append(ask, path)
			}
		}
	}
	if len(ask) == 0 {
		return
	}
	if j.until.IsZero() {
		j.until = time.Now().Add(joinTimeout)
	}
	ctx, cancel := context.WithDeadline(ctx, j.until)
	defer cancel()
	var wg sync.WaitGroup
	free := make(chan struct{}, joinsAtOnce)
	for _, path := range ask {
		f := j.found[path]
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			f.text, f.content = j.c.readFile(ctx, path)
		})
	}
	wg.Wait()
}

// first is the file that a run means: the first that there is of its paths.
func (j *join) first(run static.Run) (text, path string, content files.Content) {
	for _, path := range run.Paths {
		if f := j.found[path]; f.content != files.Absent {
			return f.text, path, f.content
		}
	}
	return "", run.Paths[0], files.Absent
}

// readFile reads a file of the call's sandbox through envd, if it is not too long.
func (c *call) readFile(ctx context.Context, path string) (string, files.Content) {
	const first = files.HeadBytes // most scripts are shorter, and it tells a program
	b, content := c.readRange(ctx, path, 0, first)
	if content != files.Text {
		return "", content
	}
	text, content := files.ReadContent(b)
	if len(b) < first || content != files.Text {
		return text, content
	}
	rest, content := c.readRange(ctx, path, first, maxFileText-first+1)
	if content != files.Text || len(rest) > maxFileText-first {
		return "", files.Unseen
	}
	return files.ReadContent(append(b, rest...))
}

// readRaw reads a file as it is, or its beginning; a file that is not there is
// empty.
func (c *call) readRaw(ctx context.Context, path string) (b []byte, whole bool) {
	b, content := c.readRange(ctx, path, 0, maxFileText+1)
	return b[:min(len(b), maxFileText)], content == files.Absent || content == files.Text && len(b) <= maxFileText
}

// ownAgent is the user agent of what the gateway reads on its own account.
const ownAgent = "e2bguard"

// readRange reads a part of a file: at most n bytes.
func (c *call) readRange(ctx context.Context, path string, from, n int64) ([]byte, files.Content) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.g.fwd.sandbox.JoinPath("/files").String(), http.NoBody)
	if err != nil {
		return nil, files.Unseen
	}
	query := url.Values{"path": {path}}
	if user := c.user(); user != "" {
		query.Set("username", user)
	}
	req.URL.RawQuery = query.Encode()
	route.Target{Sandbox: c.target.Sandbox, Port: route.PortEnvd}.SetHeaders(req.Header)
	req.Header.Set("User-Agent", ownAgent)
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, from+n-1))
	switch token := c.tokens.envd; {
	case !token.IsZero():
		req.Header.Set(headerEnvdToken, token.Reveal())
	case !c.sandbox.envdToken.IsZero():
		req.Header.Set(headerEnvdToken, c.sandbox.envdToken.Reveal())
	case !c.g.vault() && c.r.Header.Get(headerEnvdToken) != "":
		req.Header.Set(headerEnvdToken, c.r.Header.Get(headerEnvdToken))
	}
	resp, err := c.g.fwd.data.RoundTrip(req)
	if err != nil {
		return nil, files.Unseen
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
	case http.StatusRequestedRangeNotSatisfiable:
		return nil, files.Text // it ends where the range begins
	case http.StatusNotFound, http.StatusBadRequest: // the latter for a folder
		return nil, files.Absent
	default:
		return nil, files.Unseen
	}
	if resp.StatusCode == http.StatusOK && from > 0 {
		return nil, files.Unseen // all of it, from its beginning
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, n))
	if err != nil {
		return nil, files.Unseen
	}
	return b, files.Text
}
