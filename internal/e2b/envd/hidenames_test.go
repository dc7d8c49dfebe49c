package envd_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/e2bguard/e2bguard/internal/e2b/envd"
	"github.com/e2bguard/e2bguard/internal/e2b/envd/filesystempb"
	"github.com/e2bguard/e2bguard/internal/redact"
)

// A command can give a file the name of a secret, for the list of a folder to tell
// it.
func TestSecretsInNamesAreHidden(t *testing.T) {
	const secret = "sk-live-Zq8xW3vT5nB7mK2pR9sD4fG6h"
	set := redact.NewSet(false, redact.NewSecret(secret))
	target := secret
	list := &filesystempb.ListDirResponse{Entries: []*filesystempb.EntryInfo{
		{Name: secret, Path: "/tmp/" + secret, Owner: "user"}, {Name: "l", SymlinkTarget: &target}, {Name: "it's <b> &"},
	}}
	plain := &filesystempb.ListDirResponse{Entries: []*filesystempb.EntryInfo{{Name: "it's <b> &", Size: 7}}}
	for contentType, encode := range map[string]func(proto.Message) ([]byte, error){"application/json": protojson.Marshal, "application/proto": proto.Marshal} {
		h := http.Header{"Content-Type": {contentType}}
		b, err := encode(list)
		require.NoError(t, err)
		got, err := envd.HideNames("/filesystem.Filesystem/ListDir", h, bytes.NewReader(b), 1<<20, set)
		require.NoError(t, err)
		require.NotContains(t, string(got), secret)
		require.NotContains(t, string(got), secret[:20])
		require.Contains(t, string(got), "user")
		b, err = encode(plain)
		require.NoError(t, err)
		got, err = envd.HideNames("/filesystem.Filesystem/ListDir", h, bytes.NewReader(b), 1<<20, set)
		require.NoError(t, err)
		require.Equal(t, b, got, "as it came")
	}
}
