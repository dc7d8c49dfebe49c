package control

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
)

// ownerKey is the key of a sandbox's metadata that names the client that made
// it, gatewayKey the one that tells this gateway, with its replicas, from others on
// the account. E2B keeps metadata for as long as the sandbox exists, and copies it
// to what is forked or woken from it; nothing but create can write it.
const (
	ownerKey   = "e2bguard-owner"
	gatewayKey = "e2bguard-gateway"
)

// Stamp is what a gateway writes into the sandboxes that are made through it.
type Stamp struct{ Owner, Gateway string }

// stamp writes the stamp into a sandbox that is about to be made.
func (m *message) stamp(s Stamp) *refusal.Refusal {
	value, _ := m.object.Get("metadata")
	metadata, ok := value.(*strictjson.Object)
	if !ok {
		metadata = strictjson.NewObject()
		m.object.Set("metadata", metadata)
	}
	for _, key := range metadata.Keys() {
		if strings.EqualFold(key, ownerKey) || strings.EqualFold(key, gatewayKey) {
			return denied("the metadata key " + strings.ToLower(key) + " is this gateway's own; leave it out")
		}
	}
	metadata.Set(ownerKey, s.Owner)
	metadata.Set(gatewayKey, s.Gateway)
	return nil
}

// readStamp reads the stamp of a sandbox in an answer.
func readStamp(o *strictjson.Object) (s Stamp) {
	value, _ := o.Get("metadata")
	if metadata, ok := value.(*strictjson.Object); ok {
		s.Owner, _ = getText(metadata, ownerKey)
		s.Gateway, _ = getText(metadata, gatewayKey)
	}
	return s
}

// OwnerQuery narrows the query of a list to the sandboxes of one client. It
// saves E2B from listing what the gateway would have to leave out; what a client
// may see is decided on the answer all the same.
func OwnerQuery(rawQuery, owner string) (string, *refusal.Refusal) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", invalid(fmt.Errorf("its query has a broken escape; write a plain %% as %%25"))
	}
	filters := query["metadata"]
	if len(filters) > 1 {
		return "", invalid(fmt.Errorf("its query has metadata more than once; join the filters with an escaped &"))
	}
	filter := OwnerFilter(owner)
	if len(filters) == 1 && filters[0] != "" {
		// E2B keeps the last of several filters with one key.
		filter = filters[0] + "&" + filter
	}
	query.Set("metadata", filter)
	return query.Encode(), nil
}

// OwnerFilter is the value of a list's metadata parameter that narrows it to the
// sandboxes of one client.
func OwnerFilter(owner string) string { return ownerKey + "=" + url.QueryEscape(owner) }

// GatewayQuery is the query of a list of the sandboxes that run and were made
// through the gateway of that name, page by page: next is what the answer before
// gave, or "".
func GatewayQuery(gateway, next string) string {
	query := url.Values{"state": {"running"}, "limit": {"100"}, "metadata": {gatewayKey + "=" + url.QueryEscape(gateway)}}
	if next != "" {
		query.Set("nextToken", next)
	}
	return query.Encode()
}

// NextTokenHeader is the header of a list's answer that asks for the next page.
const NextTokenHeader = "X-Next-Token"

// KeepMetrics leaves only the metrics of those sandboxes for which it is told to
// in the answer to a query for the metrics of several.
func KeepMetrics(body []byte, keep func(sandboxID string) bool) ([]byte, error) {
	answer, err := strictjson.DecodeObject(body)
	if err != nil {
		return nil, fmt.Errorf("reading E2B's answer: %w", err)
	}
	value, _ := answer.Get("sandboxes")
	if value == nil {
		return body, nil
	}
	sandboxes, ok := value.(*strictjson.Object)
	if !ok {
		return nil, fmt.Errorf("reading E2B's answer: sandboxes is %s, not an object", strictjson.TypeName(value))
	}
	for _, id := range sandboxes.Keys() {
		if !keep(id) {
			sandboxes.Delete(id)
		}
	}
	return strictjson.Encode(answer), nil
}
