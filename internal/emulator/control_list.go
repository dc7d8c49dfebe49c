package emulator

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (e *Emulator) all() []*sandbox {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*sandbox, 0, len(e.sandboxes))
	for _, sb := range e.sandboxes {
		list = append(list, sb)
	}
	slices.SortFunc(list, func(a, b *sandbox) int {
		if c := b.started.Compare(a.started); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	return list
}

// matches applies a list's filters.
func (sb *sandbox) matches(q url.Values) bool {
	wanted, err := url.ParseQuery(q.Get("metadata"))
	if err != nil {
		return false
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	for k := range wanted {
		if sb.metadata[k] != wanted.Get(k) {
			return false
		}
	}
	var states []string
	for _, s := range q["state"] {
		states = append(states, strings.Split(s, ",")...)
	}
	if len(states) > 0 && !slices.Contains(states, string(sb.state)) {
		return false
	}
	if t := q.Get("template"); t != "" && t != sb.template {
		return false
	}
	if after, err := time.Parse(time.RFC3339Nano, q.Get("startedAfter")); err == nil && sb.started.Before(after) {
		return false
	}
	return true
}

func (e *Emulator) listV1(r *http.Request, _ []byte) (int, any, error) {
	q := r.URL.Query()
	q.Set("state", string(stateRunning))
	items := []map[string]any{}
	for _, sb := range e.all() {
		if sb.matches(q) {
			items = append(items, sb.listed())
		}
	}
	return http.StatusOK, items, nil
}

const maxPage = 100

func (e *Emulator) listV2(r *http.Request, _ []byte) (int, any, error) {
	q := r.URL.Query()
	limit := maxPage
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxPage {
			return 0, nil, badRequest("Error when parsing request: limit must be between 1 and %d", maxPage)
		}
		limit = n
	}
	list := e.all()
	if q.Get("order") == "asc" {
		slices.Reverse(list)
	}
	// The token is the last sandbox of the page before.
	after, skipping := q.Get("nextToken"), q.Get("nextToken") != ""
	if skipping && !slices.ContainsFunc(list, func(sb *sandbox) bool { return sb.id == after }) {
		return 0, nil, badRequest("Invalid next token")
	}
	p, items := page{}, []map[string]any{}
	for _, sb := range list {
		if skipping {
			skipping = sb.id != after
			continue
		}
		if !sb.matches(q) {
			continue
		}
		if len(items) == limit {
			p.next, _ = items[limit-1]["sandboxID"].(string)
			break
		}
		items = append(items, sb.listed())
	}
	p.items = items
	return http.StatusOK, p, nil
}

func metricsNow() map[string]any {
	now := time.Now().UTC()
	return map[string]any{
		"cpuCount": cpuCount, "cpuUsedPct": 1.5, "diskTotal": diskMB << 20, "diskUsed": 256 << 20, "memCache": 1 << 20,
		"memTotal": memoryMB << 20, "memUsed": 64 << 20, "timestamp": now.Truncate(time.Second), "timestampUnix": now.Unix(),
	}
}

func (e *Emulator) metrics(r *http.Request, _ []byte) (int, any, error) {
	if _, err := e.one(r); err != nil {
		return 0, nil, err
	}
	// There is no history: only a range that includes now has a sample.
	now, q := time.Now().Unix(), r.URL.Query()
	start, startErr := strconv.ParseInt(q.Get("start"), 10, 64)
	end, endErr := strconv.ParseInt(q.Get("end"), 10, 64)
	if (startErr == nil && start > now) || (endErr == nil && end < now) {
		return http.StatusOK, []map[string]any{}, nil
	}
	return http.StatusOK, []map[string]any{metricsNow()}, nil
}

func (e *Emulator) metricsOfAll(r *http.Request, _ []byte) (int, any, error) {
	out := map[string]any{}
	for id := range strings.SplitSeq(r.URL.Query().Get("sandbox_ids"), ",") {
		if e.lookup(id) != nil {
			out[id] = metricsNow()
		}
	}
	return http.StatusOK, map[string]any{"sandboxes": out}, nil
}

func (sb *sandbox) logEntries() []logEntry {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return append([]logEntry{}, sb.logs...)
}

func (e *Emulator) logsV1(r *http.Request, _ []byte) (int, any, error) {
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	entries := sb.logEntries()
	lines := make([]map[string]any, 0, len(entries))
	for _, entry := range entries {
		lines = append(lines, map[string]any{"line": entry.Message, "timestamp": entry.Timestamp})
	}
	return http.StatusOK, map[string]any{"logEntries": entries, "logs": lines}, nil
}

func (e *Emulator) logsV2(r *http.Request, _ []byte) (int, any, error) {
	sb, err := e.one(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"logs": sb.logEntries()}, nil
}
