#!/usr/bin/env bash
# Builds the image's file system into $OUT: a static binary, its default
# configuration, and the certificate authorities to check E2B's certificate by.
set -euo pipefail
cd "$(dirname "$0")/../.."
OUT=${OUT:-bin/image}

rm -rf "$OUT"
install -d -m 0755 "$OUT/usr/bin" "$OUT/etc/e2bguard" "$OUT/etc/ssl/certs"
install -d -m 1777 "$OUT/tmp"
CGO_ENABLED=0 go build -trimpath -tags=nobadger,nomysql,nopgx -ldflags '-s -w' -o "$OUT/usr/bin/e2bguard" ./cmd/e2bguard
chmod 0755 "$OUT/usr/bin/e2bguard"
install -m 0644 deploy/docker/Caddyfile "$OUT/etc/e2bguard/Caddyfile"
install -m 0644 /etc/ssl/certs/ca-certificates.crt "$OUT/etc/ssl/certs/ca-certificates.crt"
echo 'e2bguard:x:65532:65532::/tmp:/usr/bin/e2bguard' >"$OUT/etc/passwd"
echo 'e2bguard:x:65532:' >"$OUT/etc/group"
chmod 0644 "$OUT/etc/passwd" "$OUT/etc/group"

go version -m "$OUT/usr/bin/e2bguard" | grep -q 'CGO_ENABLED=0' || { echo "the binary is not static" >&2; exit 1; }
du -sh "$OUT"
