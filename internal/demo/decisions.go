package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// decisions keeps the lines the gateway logs, one JSON object each.
type decisions struct {
	mu    sync.Mutex
	lines [][]byte
	live  io.Writer
}

// logger returns a logger of the name and encoding the gateway's lines have in
// Caddy's log.
func (d *decisions) logger() *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.EncodeDuration = zapcore.SecondsDurationEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.AddSync(d), zapcore.DebugLevel)
	return zap.New(core).Named("http.handlers.e2b_guard")
}

// Write takes one line; zap calls it once for each entry.
func (d *decisions) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, bytes.Clone(line))
	if d.live != nil {
		return d.live.Write(line)
	}
	return len(line), nil
}

// follow copies lines to out from now on.
func (d *decisions) follow(out io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live = out
}

// line is what the demo shows of a logged decision.
type line struct {
	Msg       string  `json:"msg"`
	RequestID string  `json:"request_id"`
	Decision  string  `json:"decision"`
	Operation string  `json:"operation"`
	Code      string  `json:"code"`
	Changed   string  `json:"changed"`
	Took      float64 `json:"took"`
	Subjects  []struct {
		Kind   string `json:"kind"`
		Ruling struct {
			Verdict struct {
				Decision string `json:"decision"`
				Guard    string `json:"guard"`
			} `json:"verdict"`
		} `json:"ruling"`
	} `json:"subjects"`
}

func (l line) String() string {
	decision := l.Decision
	if decision == "" {
		decision = l.Msg
	}
	fields := []string{fmt.Sprintf("%-6s  %-16s", decision, l.Operation), "request_id=" + l.RequestID}
	for _, subject := range l.Subjects {
		verdict := subject.Ruling.Verdict
		fields = append(fields, fmt.Sprintf("%s: %s by %s", subject.Kind, verdict.Decision, verdict.Guard))
	}
	if l.Code != "" {
		fields = append(fields, "code="+l.Code)
	}
	if l.Changed != "" {
		fields = append(fields, "changed="+l.Changed)
	}
	if l.Took > 0 {
		took := time.Duration(l.Took * float64(time.Second)).Round(time.Microsecond)
		fields = append(fields, "took="+took.String())
	}
	return strings.Join(fields, "  ")
}

// print shows every line in short, and the last block as it was logged.
func (d *decisions) print(out io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintln(out, "What the gateway logged (http.handlers.e2b_guard), in short:")
	var block []byte
	for _, raw := range d.lines {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil || l.RequestID == "" {
			continue
		}
		if l.Decision == "block" {
			block = raw
		}
		fmt.Fprintln(out, "  "+l.String())
	}
	if block != nil {
		fmt.Fprintf(out, "\nThe last block, as it was logged:\n  %s", block)
	}
}
