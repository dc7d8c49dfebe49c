package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Sizes of the transfers.
const (
	streamBytes   = 64 << 20
	transferBytes = 256 << 20
	// chunkBytes is the most stdout envd puts in one event.
	chunkBytes = 32 << 10
)

// upstream speaks just enough of E2B's wire to be measured through, and does
// nothing.
type upstream struct {
	url    string
	server *http.Server
}

func startUpstream() (*upstream, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	metrics := []byte("[" + strings.TrimSuffix(strings.Repeat(
		`{"timestamp":"2026-01-01T00:00:00Z","cpuCount":2,"cpuUsedPct":1.5,"memTotal":536870912,"memUsed":134217728},`, 10), ",") + "]")

	mux := http.NewServeMux()
	create := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"sandboxID":"ibench","templateID":"base","clientID":"0","envdVersion":"0.6.13","envdAccessToken":"ea_bench","domain":null}`)
	}
	mux.HandleFunc("POST /sandboxes", create)
	mux.HandleFunc("POST /v2/sandboxes", create)
	mux.HandleFunc("GET /sandboxes/{id}", func(w http.ResponseWriter, _ *http.Request) { // every new sandbox is read back
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"sandboxID":"ibench","templateID":"base","clientID":"0","envdVersion":"0.6.13","startedAt":"2026-01-01T00:00:00Z","endAt":"2026-01-01T00:01:00Z",`+
			`"allowInternetAccess":false,"network":{"denyOut":["0.0.0.0/0"],"allowPublicTraffic":false}}`)
	})
	mux.HandleFunc("GET /sandboxes/{id}/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(metrics)
	})
	mux.HandleFunc("POST /process.Process/Start", start)
	mux.HandleFunc("POST /files", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `[{"name":"data.bin","path":"/home/user/data.bin","type":"file","size":`+strconv.FormatInt(n, 10)+`}]`)
	})
	mux.HandleFunc("GET /files", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(transferBytes))
		block := make([]byte, 256<<10)
		for range transferBytes / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})

	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return &upstream{"http://" + listener.Addr().String(), server}, nil
}

func (u *upstream) close() { _ = u.server.Close() }

// streamCommand is the command that start answers with streamBytes of stdout.
const streamCommand = "cat data.log"

// start answers like envd: a start event, stdout, an end event and the end of
// the stream, flushed event by event.
func start(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/connect+json")
	flush := http.NewResponseController(w).Flush
	_, _ = w.Write(frame(0, `{"event":{"start":{"pid":7}}}`))
	_ = flush()
	chunk, chunks := []byte("ok\n"), 1
	if strings.Contains(string(body), streamCommand) {
		chunk, chunks = []byte(strings.Repeat("0123456789abcde\n", chunkBytes/16)), streamBytes/chunkBytes
	}
	data := frame(0, `{"event":{"data":{"stdout":"`+base64.StdEncoding.EncodeToString(chunk)+`"}}}`)
	for range chunks {
		if _, err := w.Write(data); err != nil {
			return
		}
		_ = flush()
	}
	_, _ = w.Write(frame(0, `{"event":{"end":{"exited":true,"status":"exit status 0"}}}`))
	_, _ = w.Write(frame(2, `{}`))
}

// frame is one message of a Connect stream.
func frame(flag byte, payload string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(payload))), payload...) //nolint:gosec // Small.
}

// startBody is the SDK's request for a shell command.
func startBody(command string) ([]byte, error) {
	payload, err := json.Marshal(map[string]any{
		"process": map[string]any{"cmd": "/bin/bash", "args": []string{"-l", "-c", command}},
		"stdin":   false,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a command: %w", err)
	}
	return frame(0, string(payload)), nil
}
