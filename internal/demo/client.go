package demo

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// Ports of the services in a sandbox. Source: E2B's SDKs.
const (
	portEnvd        = 49983
	portInterpreter = 49999
)

// client speaks as much of E2B's wire as the demo needs, and reads errors where
// E2B's SDKs read them.
type client struct {
	url     string
	http    *http.Client
	sandbox string
	token   string
}

// answer is what came of one call.
type answer struct {
	Status status
	// Text is the reason of a block or stop, or the output of a pass.
	Text string
}

type status string

const (
	pass    status = "pass"
	block   status = "block"   // The gateway refused it, and says why.
	stopped status = "stopped" // It ran, and a limit ended it.
	failed  status = "error"   // Anything else.
)

// refused is the answer for an error that a client was shown: a block only if
// the gateway signed it.
func refused(text string) answer {
	const signature = "[e2bguard request "
	if strings.Contains(text, signature) {
		return answer{block, text}
	}
	return answer{failed, text}
}

// request sends one request; with port, to the sandbox.
func (c *client) request(ctx context.Context, method, path string, port int, contentType string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if port == 0 {
		req.Header.Set("X-API-Key", APIKey)
	} else {
		req.Header.Set("E2b-Sandbox-Id", c.sandbox)
		req.Header.Set("E2b-Sandbox-Port", strconv.Itoa(port))
		req.Header.Set("X-Access-Token", c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("calling %s %s: %w", method, path, err)
	}
	return resp, nil
}

// rest makes one JSON call and reads its answer into result, if it has one.
func (c *client) rest(ctx context.Context, method, path string, port int, body, result any) (answer, error) {
	payload, err := json.Marshal(body)
	if err != nil {
		return answer{}, fmt.Errorf("encoding a request: %w", err)
	}
	resp, err := c.request(ctx, method, path, port, "application/json", payload)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	return readREST(resp, result)
}

func readREST(resp *http.Response, result any) (answer, error) {
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, fmt.Errorf("reading an answer: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		var refusal struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(data, &refusal) != nil || refusal.Message == "" {
			refusal.Message = string(data)
		}
		return refused(fmt.Sprintf("%d: %s", resp.StatusCode, refusal.Message)), nil
	}
	if result != nil {
		if err := json.Unmarshal(data, result); err != nil {
			return answer{}, fmt.Errorf("reading an answer: %w", err)
		}
	}
	return answer{Status: pass}, nil
}

// sandboxInfo is what the demo reads of a sandbox.
type sandboxInfo struct {
	ID        string    `json:"sandboxID"`
	Token     string    `json:"envdAccessToken"`
	StartedAt time.Time `json:"startedAt"`
	EndAt     time.Time `json:"endAt"`
}

// create makes a sandbox and, if it passes, works in it from now on.
func (c *client) create(ctx context.Context, body map[string]any) (answer, error) {
	var info sandboxInfo
	got, err := c.rest(ctx, http.MethodPost, "/v2/sandboxes", 0, body, &info)
	if err == nil && got.Status == pass {
		c.sandbox, c.token = info.ID, info.Token
		got.Text = "sandbox " + info.ID
	}
	return got, err
}

// start runs a shell command as the SDKs do and reads it to its end.
func (c *client) start(ctx context.Context, command string, envs map[string]string) (answer, error) {
	message, err := protojson.Marshal(&processpb.StartRequest{
		Process: &processpb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", command}, Envs: envs},
	})
	if err != nil {
		return answer{}, fmt.Errorf("encoding a command: %w", err)
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) //nolint:gosec // A few bytes.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/process.Process/Start", bytes.NewReader(append(frame, message...)))
	if err != nil {
		return answer{}, fmt.Errorf("making a request: %w", err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1", "Connect-Timeout-Ms": "60000",
		"E2b-Sandbox-Id": c.sandbox, "E2b-Sandbox-Port": strconv.Itoa(portEnvd), "X-Access-Token": c.token,
	} {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("starting a command: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return readREST(resp, nil)
	}
	return readStart(resp.Body)
}

// readStart reads the stream of a command: an error frame before the process
// started is a refusal, one after it is a limit.
func readStart(stream io.Reader) (answer, error) {
	var output strings.Builder
	started := false
	for {
		var head [5]byte
		if _, err := io.ReadFull(stream, head[:]); err != nil {
			return answer{}, fmt.Errorf("reading a command's stream: %w", err)
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(stream, payload); err != nil {
			return answer{}, fmt.Errorf("reading a command's stream: %w", err)
		}
		if head[0]&2 != 0 {
			return readEnd(payload, started, output.String())
		}
		var message processpb.StartResponse
		if err := protojson.Unmarshal(payload, &message); err != nil {
			return answer{}, fmt.Errorf("reading a command's event: %w", err)
		}
		switch event := message.GetEvent().GetEvent().(type) {
		case *processpb.ProcessEvent_Start:
			started = true
		case *processpb.ProcessEvent_Data:
			output.Write(event.Data.GetStdout())
			output.Write(event.Data.GetStderr())
		case *processpb.ProcessEvent_End:
			if code := event.End.GetExitCode(); code != 0 {
				return answer{stopped, strings.TrimSpace(lastLine(output.String()) + " (" + event.End.GetStatus() + ")")}, nil
			}
		}
	}
}

// readEnd reads the end-of-stream frame.
func readEnd(payload []byte, started bool, output string) (answer, error) {
	var end struct {
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(payload, &end); err != nil {
		return answer{}, fmt.Errorf("reading the end of a command's stream: %w", err)
	}
	switch {
	case end.Error == nil:
		return answer{pass, strings.TrimSpace(output)}, nil
	case started:
		return answer{stopped, end.Error.Code + ": " + end.Error.Message}, nil
	default:
		return refused(end.Error.Code + ": " + end.Error.Message), nil
	}
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// list returns the processes that run in the sandbox.
func (c *client) list(ctx context.Context) ([]*processpb.ProcessInfo, answer, error) {
	resp, err := c.request(ctx, http.MethodPost, "/process.Process/List", portEnvd, "application/json", []byte("{}"))
	if err != nil {
		return nil, answer{}, err
	}
	defer resp.Body.Close()
	var raw json.RawMessage
	got, err := readREST(resp, &raw)
	if err != nil || got.Status != pass {
		return nil, got, err
	}
	var message processpb.ListResponse
	if err := protojson.Unmarshal(raw, &message); err != nil {
		return nil, answer{}, fmt.Errorf("reading the list of processes: %w", err)
	}
	return message.GetProcesses(), got, nil
}

// execute runs code in the code interpreter.
func (c *client) execute(ctx context.Context, language, code string) (answer, error) {
	payload, err := json.Marshal(map[string]string{"code": code, "language": language})
	if err != nil {
		return answer{}, fmt.Errorf("encoding code: %w", err)
	}
	resp, err := c.request(ctx, http.MethodPost, "/execute", portInterpreter, "application/json", payload)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return readREST(resp, nil)
	}
	var output strings.Builder
	for events := json.NewDecoder(resp.Body); ; {
		var event struct {
			Type  string `json:"type"`
			Text  string `json:"text"`
			Name  string `json:"name"`
			Value string `json:"value"`
		}
		if err := events.Decode(&event); err != nil {
			return answer{}, fmt.Errorf("reading an execution's stream: %w", err)
		}
		switch event.Type {
		case "stdout", "result":
			output.WriteString(event.Text)
		case "error":
			return refused(event.Name + ": " + event.Value), nil
		case "end_of_execution":
			return answer{pass, strings.TrimSpace(output.String())}, nil
		}
	}
}

// write uploads a file as the SDKs do.
func (c *client) write(ctx context.Context, path, text string) (answer, error) {
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	part, err := writer.CreateFormFile("file", path)
	if err == nil {
		_, err = io.WriteString(part, text)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		return answer{}, fmt.Errorf("encoding a file: %w", err)
	}
	query := url.Values{"path": {path}, "username": {"user"}}
	resp, err := c.request(ctx, http.MethodPost, "/files?"+query.Encode(), portEnvd, writer.FormDataContentType(), form.Bytes())
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	return readREST(resp, nil)
}
