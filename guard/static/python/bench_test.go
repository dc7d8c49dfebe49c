package python

import (
	"testing"

	"github.com/e2bguard/e2bguard/guard/static/flow/flowtest"
)

func BenchmarkParse(b *testing.B) {
	flowtest.Bench(b, Parse, `
import pandas as pd
from collections import Counter

def summarise_%[1]d(path, column="value", limit=10):
    """Reads a table and counts the values of a column."""
    frame = pd.read_csv(path)
    counts = Counter(str(v).strip().lower() for v in frame[column] if v is not None)
    result = []
    for key, n in counts.most_common(limit):
        if n > 1 and key not in ("", "nan"):
            result.append({"key": key, "n": n, "share": n / len(frame)})
    print(f"{len(result)} of {len(counts)} values of {column} in {path}")
    return sorted(result, key=lambda r: (-r["n"], r["key"]))
`)
}
