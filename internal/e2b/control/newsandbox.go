package control

import (
	"encoding/json"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// NewSandbox is the body of a call that makes a sandbox of a template which lives
// for so long. Source: NewSandboxV2 of E2B's API.
func NewSandbox(template string, lifetime time.Duration) []byte {
	o := strictjson.NewObject()
	o.Set("templateID", template)
	seconds, _ := json.Marshal(int64((lifetime + time.Second - 1) / time.Second)) // a number can be written
	o.Set("timeout", strictjson.Number(seconds))
	return strictjson.Encode(o)
}

// Fault is the message of an answer of E2B's that is an error; "" if it has none.
func Fault(body []byte) string {
	o, err := strictjson.DecodeObject(body)
	if err != nil {
		return ""
	}
	message, _ := getText(o, "message")
	return message
}
