package static

import (
	"context"
	"strings"
	"testing"

	"github.com/e2bguard/e2bguard/guard"
)

// benchText is an ordinary snippet of a language, about a kilobyte long.
var benchText = map[string]string{
	"bash": `#!/bin/bash
set -euo pipefail

APP_DIR="${APP_DIR:-/home/user/app}"
LOG="$APP_DIR/build.log"
mkdir -p "$APP_DIR/dist"
cd "$APP_DIR"

if [ ! -d node_modules ]; then
  echo "Installing dependencies" | tee -a "$LOG"
  npm ci --no-audit --no-fund >> "$LOG" 2>&1
fi

for target in web api worker; do
  echo "Building $target"
  npm run build -- --target "$target" --out "dist/$target" >> "$LOG" 2>&1 || {
    echo "Build of $target failed" >&2
    tail -n 20 "$LOG"
    exit 1
  }
done

rm -rf dist/.cache
find dist -name '*.map' -size +1M -delete
VERSION=$(git describe --tags --always)
tar czf "app-$VERSION.tar.gz" dist
ls -lh app-*.tar.gz | awk '{print $5, $9}'
curl -fsS http://localhost:3000/health | grep -q ok && echo "Server is up"
python3 -m http.server 8000 --directory dist &
SERVER_PID=$!
sleep 1
kill "$SERVER_PID"
`,
	"python": `import json
import os
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

DATA = Path(os.environ.get("DATA_DIR", "data"))


def load(name):
    """Read one table and drop what is empty."""
    frame = pd.read_csv(DATA / f"{name}.csv", parse_dates=["date"])
    return frame.dropna(subset=["value"])


def summarise(frame):
    grouped = frame.groupby(frame["date"].dt.month)["value"]
    return {int(k): {"mean": round(v.mean(), 2), "max": v.max()} for k, v in grouped}


frames = {name: load(name) for name in ("north", "south", "west")}
result = {name: summarise(frame) for name, frame in frames.items()}

with open("summary.json", "w") as out:
    json.dump(result, out, indent=2)

for name, frame in frames.items():
    plt.plot(frame["date"], frame["value"], label=name)

plt.legend()
plt.title("Values by region")
plt.savefig("chart.png", dpi=120)
print(json.dumps(result, indent=2)[:500])
`,
	"javascript": `const fs = require('fs');
const path = require('path');

const DATA = process.env.DATA_DIR || 'data';

function load(name) {
  const text = fs.readFileSync(path.join(DATA, name + '.json'), 'utf8');
  return JSON.parse(text).filter((row) => row.value !== null);
}

function summarise(rows) {
  const byMonth = new Map();
  for (const { date, value } of rows) {
    const month = new Date(date).getMonth() + 1;
    const list = byMonth.get(month) ?? [];
    list.push(value);
    byMonth.set(month, list);
  }
  return [...byMonth].map(([month, values]) => ({
    month,
    mean: values.reduce((a, b) => a + b, 0) / values.length,
    max: Math.max(...values),
  }));
}

const result = {};
for (const name of ['north', 'south', 'west']) {
  result[name] = summarise(load(name));
}

fs.writeFileSync('summary.json', JSON.stringify(result, null, 2));
console.log(Object.keys(result).length, 'regions written');
`,
}

// sized is the snippet cut or repeated to a size, at a line's end.
func sized(text string, n int) string {
	if n < len(text) {
		if i := strings.LastIndexByte(text[:n], '\n'); i > 0 {
			return text[:i]
		}

		return text[:n]
	}

	return strings.Repeat(text, n/len(text)+1)[:n/len(text)*len(text)]
}

// BenchmarkReview is the whole verdict on ordinary snippets by language and
// size; the metric µs/KB is what the target of 25 speaks of.
func BenchmarkReview(b *testing.B) {
	g := newGuard(b, Options{})

	for _, lang := range []string{"bash", "python", "javascript"} {
		for _, size := range []struct {
			name string
			n    int
		}{{"100B", 100}, {"1KB", 1 << 10}, {"10KB", 10 << 10}, {"100KB", 100 << 10}} {
			text := sized(benchText[lang], size.n)
			s := code(lang, text)

			b.Run(lang+"/"+size.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(text)))

				for b.Loop() {
					_, _ = g.Review(context.Background(), s)
				}

				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000*1024/float64(len(text)), "µs/KB")
			})
		}
	}
}

// BenchmarkParallel is throughput with every core at work.
func BenchmarkParallel(b *testing.B) {
	g := newGuard(b, Options{})

	for _, lang := range []string{"bash", "python", "javascript"} {
		s := code(lang, benchText[lang])

		b.Run(lang, func(b *testing.B) {
			b.SetBytes(int64(len(s.Text)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = g.Review(context.Background(), s)
				}
			})
		})
	}
}

// BenchmarkHostile is what a megabyte made to be slow costs: nesting, and all
// on one line.
func BenchmarkHostile(b *testing.B) {
	g := newGuard(b, Options{})

	for _, lang := range []string{"bash", "python", "javascript", "typescript", "r", "java"} {
		for _, p := range []string{"(", "$(", "a|", "a ", "a\n", "x=", "'", "[", "{\"a\":", "f(", "<(", "?:", "import a;"} {
			s := guard.Subject{Kind: guard.KindCode, Language: lang, Text: strings.Repeat(p, (1<<20)/len(p))}

			b.Run(lang+"/"+p, func(b *testing.B) {
				for b.Loop() {
					_, _ = g.Review(context.Background(), s)
				}
			})
		}
	}
}

// BenchmarkRuns is what finding the files of a command costs before it is judged.
func BenchmarkRuns(b *testing.B) {
	for name, s := range map[string]guard.Subject{
		"no file":  {Kind: guard.KindCommand, Language: "bash", Text: "ls -la && git status && pip list | head -n 20"},
		"script":   {Kind: guard.KindCommand, Language: "bash", Text: "cd app && bash run.sh --fast"},
		"cell":     {Kind: guard.KindCode, Language: "python", Text: strings.Repeat("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 3]})\nprint(df.describe())\n", 10)},
		"one word": {Kind: guard.KindCommand, Language: "bash", Text: "ls"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				_, _ = Runs(s)
			}
		})
	}
}
