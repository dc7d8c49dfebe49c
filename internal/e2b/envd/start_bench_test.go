package envd

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/envd/processpb"
)

// BenchmarkStart is all that a guarded start costs here: classify, decode,
// subjects, limits, headers, encode.
func BenchmarkStart(b *testing.B) {
	for name, tt := range map[string]struct{ ct, body string }{
		"json":  {jsonType, frameOf(0, `{"process":{"cmd":"/bin/bash","args":["-l","-c","for i in 1 2 3; do echo $i; done"],"envs":{"X":"y"},"cwd":"/tmp"},"stdin":false}`)},
		"proto": {protoType, frameOf(0, protoOf(b, start("/bin/bash", "-l", "-c", "for i in 1 2 3; do echo $i; done")))},
	} {
		b.Run(name, func(b *testing.B) {
			m := methodOf(b, startPath)
			b.ReportAllocs()
			for b.Loop() {
				h := http.Header{"Content-Type": {tt.ct}, "Connect-Timeout-Ms": {"60000"}, "Keepalive-Ping-Interval": {"50"}}
				enc, r := Classify(m, h)
				if r != nil {
					b.Fatal(r)
				}
				msg, r := Decode(m, enc, bytes.NewReader([]byte(tt.body)), maxTest)
				if r != nil {
					b.Fatal(r)
				}
				if _, r := msg.Subjects(h); r != nil {
					b.Fatal(r)
				}
				Wrap(msg.Proto.(*processpb.StartRequest), testLimits)
				if _, r := SanitiseHeaders(msg, h, Deadlines{WallClock: time.Minute}); r != nil {
					b.Fatal(r)
				}
				if _, err := msg.Encode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
