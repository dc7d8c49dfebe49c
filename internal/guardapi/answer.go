package guardapi

import (
	"encoding/json"
	"slices"

	"github.com/e2bguard/e2bguard/guard"
)

// Answer is a verdict as the API tells it.
type Answer struct {
	// ID is the request's.
	ID string
	// Block says whether the text is rejected.
	Block      bool
	Reasoning  string
	Violations []guard.Violation // of a block
}

// The members of an answer, in the order the API has them.
type (
	completion struct {
		ID      string   `json:"id"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   usage    `json:"usage"`
	}
	choice struct {
		Index        int     `json:"index"`
		Message      message `json:"message"`
		FinishReason string  `json:"finish_reason"`
	}
	message struct {
		Role    string `json:"role"`
		Content any    `json:"content"` // content, or its JSON
		// Clients look for the reasons under either name.
		Reasoning        string `json:"reasoning"`
		ReasoningContent string `json:"reasoning_content,omitempty"`
	}
	content struct {
		Classification string `json:"classification"`
		// Status is what some clients call it.
		Status         string   `json:"status,omitempty"`
		ViolationTypes []string `json:"violation_types"`
		CWECodes       []string `json:"cwe_codes"`
	}
	// usage is there because clients hand it on; no model's tokens are counted.
	usage struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		TotalTokens      int `json:"total_tokens"`
	}
)

// Encode writes the answer for the client that asked.
func (a Answer) Encode(r Request) []byte {
	c := content{Classification: "pass", ViolationTypes: []string{}, CWECodes: []string{}}
	if a.Block {
		c.Classification = "block"
		for _, v := range a.Violations {
			c.ViolationTypes = added(c.ViolationTypes, v.Type)
			c.CWECodes = added(c.CWECodes, v.CWE)
		}
	}
	m := message{Role: "assistant", Content: c, Reasoning: a.Reasoning}
	if r.Quoted {
		c.Status = c.Classification
		m.Content, m.ReasoningContent = string(marshal(c)), a.Reasoning
	}
	return marshal(completion{ID: a.ID, Model: "e2bguard", Choices: []choice{{Message: m, FinishReason: "stop"}}})
}

// added is a list with one more word, each once.
func added(list []string, word string) []string {
	if word == "" || slices.Contains(list, word) {
		return list
	}
	return append(list, word)
}

// marshal cannot fail: the types hold strings and numbers.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
