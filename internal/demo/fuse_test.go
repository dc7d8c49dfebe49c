package demo

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFuseBreaksARequestThatCarriesAnAttack(t *testing.T) {
	body := strings.Repeat("x", 5000) + attackMark + "rest"
	for name, reader := range map[string]io.Reader{
		"at once":      strings.NewReader(body),
		"byte by byte": iotest.OneByteReader(strings.NewReader(body)),
		"half by half": iotest.HalfReader(strings.NewReader(body)),
	} {
		t.Run(name, func(t *testing.T) {
			var got []byte
			var err error
			f := &fuse{next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got, err = io.ReadAll(r.Body)
				_, again := r.Body.Read(make([]byte, 1))
				require.ErrorIs(t, again, errBlown, "the fuse came back")
			})}
			f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/execute", reader))
			require.ErrorIs(t, err, errBlown)
			assert.NotContains(t, string(got), attackMark)
			assert.Equal(t, []string{"POST /execute"}, f.reached())
		})
	}
}

func TestFuseLeavesOtherRequestsAlone(t *testing.T) {
	body := strings.Repeat(attackMark[:len(attackMark)-1]+" ", 500)
	var got []byte
	f := &fuse{next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var err error
		got, err = io.ReadAll(r.Body)
		require.NoError(t, err)
	})}
	f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/execute", iotest.HalfReader(strings.NewReader(body))))
	assert.Equal(t, body, string(got))
	assert.Empty(t, f.reached())
}

func TestFusePassesOnTheErrorsOfABody(t *testing.T) {
	broken := errors.New("broken off")
	f := &fuse{next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		require.ErrorIs(t, err, broken)
	})}
	f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/execute", iotest.ErrReader(broken)))
}

// Every attack of the scenario must carry the mark, or a gateway that lets it
// through would run it on this machine.
func TestEveryAttackOfTheScenarioCarriesTheMark(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "[e2bguard request x]")
	}))
	defer server.Close()
	for _, step := range scenario {
		harmful := step.want == block && (step.surface == "command" || step.surface == "python" || step.surface == "javascript" || step.surface == "file")
		if !harmful {
			continue
		}
		bodies = nil
		got, err := step.do(t.Context(), &client{url: server.URL, http: server.Client()})
		require.NoError(t, err, step.tried)
		assert.Equal(t, block, got.Status, step.tried)
		require.Len(t, bodies, 1, step.tried)
		assert.Contains(t, bodies[0], attackMark, step.tried)
	}
}
