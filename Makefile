# Everything a contributor runs. `make` lists it.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BINARY := bin/e2bguard
# The flags are xcaddy's, so that all builds and tests share a cache; the tags
# leave out databases that Caddy's certificate authority could use.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -tags=nobadger,nomysql,nopgx
BUILD := go build -ldflags '-s -w'
# Packages with goroutines of their own, which are tested with the race detector.
# (caddymodule has none, and with it all of Caddy would be compiled once more.)
CONCURRENT := /(guard|guard/superagent|internal/(audit|audit/store|body|demo|emulator|gateway))$$

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: build
build: ## Build bin/e2bguard
	$(BUILD) -o $(BINARY) ./cmd/e2bguard

.PHONY: demo
demo: build ## Run the main job: emulator, gateway, harmless and harmful calls
	$(BINARY) demo
	npm ci --prefix e2e --no-audit --no-fund --silent
	$(BINARY) demo -- node e2e/demo.mjs

.PHONY: test
test: check-format vet test-go test-e2e ## Run all tests

.PHONY: check-format
check-format:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [[ -z "$$unformatted" ]] || { echo "not formatted, run gofmt -w: $$unformatted" >&2; exit 1; }

.PHONY: vet
vet:
	go vet ./...

.PHONY: test-go
test-go: build
	CGO_ENABLED=1 go test -race $$(go list ./... | grep -E '$(CONCURRENT)')
	E2BGUARD_BIN=$(CURDIR)/$(BINARY) go test $$(go list ./... | grep -vE '$(CONCURRENT)')

.PHONY: test-e2e
test-e2e: build
	npm ci --prefix e2e --no-audit --no-fund
	npm test --prefix e2e

.PHONY: fuzz-short
fuzz-short: ## Run every fuzz target for ten seconds
	@go list ./... | while read -r package; do \
		for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime 10s "$$package"; \
		done; done

.PHONY: bench
bench: build ## Compare with plain Caddy: latency, throughput, memory; time the search for secrets and the static guard
	go run ./internal/bench
	go test -run '^$$' -bench Stream -benchtime 200ms ./internal/redact
	go test -run '^$$' -bench . -benchtime 200ms ./guard/static

.PHONY: golden
golden: ## Rewrite golden files and generated docs after an intended change
	go test ./caddymodule -run 'Golden|Generated' -update
	go test ./internal/gateway -run TestMatrix -update

.PHONY: cross
cross: ## Compile for every supported platform
	for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do \
		echo "$$target"; GOOS=$${target%/*} GOARCH=$${target#*/} $(BUILD) -o bin/e2bguard-$${target/\//-} ./cmd/e2bguard; done

.PHONY: lint
lint: ## Run golangci-lint
	mkdir -p bin/tools
	GOBIN=$(CURDIR)/bin/tools go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	bin/tools/golangci-lint run

.PHONY: image
image: ## Build the container image (needs docker)
	docker build -f deploy/docker/Dockerfile -t e2bguard:0.1.0 .
