package javascript

import (
	"testing"

	"github.com/e2bguard/e2bguard/guard/static/flow/flowtest"
)

func BenchmarkParse(b *testing.B) {
	flowtest.Bench(b, Parse, `
import path from 'node:path';

/** Groups items by a key and keeps the largest groups. */
export async function group_%[1]d(items, { key = 'name', limit = 10 } = {}) {
  const groups = new Map();
  for (const item of items) {
    const k = String(item[key] ?? '').trim().toLowerCase();
    if (!groups.has(k)) groups.set(k, []);
    groups.get(k).push({ ...item, file: path.basename(item.file) });
  }
  const sorted = [...groups.entries()].filter(([k, v]) => k && v.length > 1).sort((a, b) => b[1].length - a[1].length);
  console.log(sorted.length + ' of ' + groups.size + ' groups');
  return sorted.slice(0, limit).map(([k, v]) => ({ key: k, n: v.length, share: v.length / items.length }));
}
`)
}
