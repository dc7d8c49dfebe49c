package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/control"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/seal"
)

// The files of a build's COPY steps go to a URL that E2B names, past its API. A
// client is told a URL of the gateway's instead, in which is sealed whose files of
// which template may be sent to it. What arrives there is read, judged, written
// anew and sent on by the gateway alone.
//
// E2B is told another name for the files than the client's: one that is made of
// the client, of the name that the client gave and of what is in them. So a build
// gets the files that were judged, though the client may send others under the
// same name meanwhile, and none that another client, or somebody past the gateway,
// has sent.

// uploadParam is the parameter of an upload URL that holds what is sealed. Its name
// is one whose values are in no access log.
const uploadParam = "token"

// uploadURLLife is how long an upload may take to begin.
const uploadURLLife = time.Hour

// sealer seals what is about the files of builds.
func (g *Gateway) sealer() *seal.Sealer {
	if g.cfg.Seal != nil {
		return g.cfg.Seal
	}
	return g.state.ownSeal
}

func newOwnSeal() *seal.Sealer {
	keys, err := seal.ParseKeys(seal.GenerateKey())
	if err == nil {
		var s *seal.Sealer
		if s, err = seal.New(keys...); err == nil {
			return s
		}
	}
	panic(err) // only for a key that is not one
}

// archiveName is what E2B is to call files of a client.
func (g *Gateway) archiveName(client, hash string, content [sha256.Size]byte) string {
	sealed := g.sealer().Seal(seal.Token{Kind: seal.Archive, Sandbox: hash, Client: client, Inner: string(content[:])})
	name := sha256.Sum256([]byte(sealed))
	return hex.EncodeToString(name[:])
}

// enforceFiles asks E2B about the files as it knows them.
func (c *call) enforceFiles() *refusal.Refusal {
	hash := c.target.Params[route.ParamFiles]
	if !control.IsFilesHash(hash) {
		return refusal.New(refusal.CodeInvalid, "the hash of a build's files is not the SHA-256 that E2B's SDKs send: 64 hexadecimal digits in lower case.")
	}
	if known, ok := c.g.state.archives.get(archiveKey{c.client, hash}); ok && known.name != "" {
		c.target.Path = strings.TrimSuffix(c.target.Path, hash) + known.name
		c.target.RawPath = strings.TrimSuffix(c.target.RawPath, hash) + known.name
	}
	return nil
}

// filterFiles answers with a URL of the gateway's. Files that it does not remember
// are not there, whatever E2B has: it could not judge where they go.
func (c *call) filterFiles(resp *http.Response) error {
	b, err := takeAnswer(resp)
	if err != nil {
		return err
	}
	present, _, err := control.UploadPlace(b)
	if err != nil {
		return refuseAnswer(err)
	}
	hash := c.target.Params[route.ParamFiles]
	known, ok := c.g.state.archives.get(archiveKey{c.client, hash})
	replaceBody(resp, control.UploadAnswer(present && ok && known.name != "", c.uploadURL(hash)))
	return nil
}

// uploadURL is where the client is to send files. It reaches the gateway there as
// it reached it for this call.
func (c *call) uploadURL(hash string) string {
	template := c.target.Params[route.ParamTemplate]
	inner := []string{strconv.FormatInt(time.Now().Add(uploadURLLife).Unix(), 10), hash}
	if !c.g.vault() { // the upload itself carries no key, and E2B asks for the client's
		inner = append(inner, c.r.Header.Get("X-Api-Key"), c.r.Header.Get("Authorization"))
	}
	sealed := c.g.sealer().Seal(seal.Token{Kind: seal.Upload, Sandbox: template, Client: c.client, Inner: strings.Join(inner, "\x00")})
	u := url.URL{Scheme: "http", Host: c.r.Host, Path: "/templates/" + template + "/files/" + hash, RawQuery: uploadParam + "=" + sealed}
	u.RawPath = "/templates/" + url.PathEscape(template) + "/files/" + hash
	if c.r.TLS != nil || strings.EqualFold(c.r.Header.Get("X-Forwarded-Proto"), "https") {
		u.Scheme = "https"
	}
	return u.String()
}

// identifyByUploadURL tells by an upload URL who may send files, and which.
func (c *call) identifyByUploadURL() *refusal.Refusal {
	bad := refusal.New(refusal.CodeUnauthorized, "unauthorized access: the URL is not one that this gateway gave out to send these files to, or not since it was started. Build again.")
	given := c.r.URL.Query()[uploadParam]
	if len(given) != 1 {
		return c.suspect(bad)
	}
	t, err := c.g.sealer().Open(given[0])
	inner := strings.Split(t.Inner, "\x00")
	if err != nil || t.Kind != seal.Upload || len(inner) < 2 || t.Sandbox != c.target.Params[route.ParamTemplate] || inner[1] != c.target.Params[route.ParamFiles] || c.g.vault() && !c.g.isClient(t.Client) || c.g.vault() != (len(inner) == 2) {
		return c.suspect(bad)
	}
	c.client = t.Client
	until, err := strconv.ParseInt(inner[0], 10, 64)
	if err != nil || time.Now().Unix() > until {
		return refusal.New(refusal.CodeUnauthorized, fmt.Sprintf("the URL to send files to has expired: it holds for %s. Build again.", uploadURLLife))
	}
	if !c.g.vault() && len(inner) == 4 {
		c.r.Header.Set("X-Api-Key", inner[2])
		c.r.Header.Set("Authorization", inner[3])
	}
	return nil
}
