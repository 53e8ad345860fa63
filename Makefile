# Habits, nothing more: every target is one or two commands of the Go tool that
# may as well be typed. Tools are run at the versions named here, not installed.

SHELL         := bash
GO            ?= go
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GORELEASER    := github.com/goreleaser/goreleaser/v2@v2.12.7
KUSTOMIZE     := sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
GOTESTSUM     := gotest.tools/gotestsum@v1.13.0

# What may be set: make fuzz FUZZTIME=1m, make bench BENCH=Online, …
FUZZTIME      ?= 10s
BENCH         ?= .
SUITE         ?= weak
ONLY          ?=
CORPUS        ?=
DURATION      ?= 30s
HISTORIES     ?= 20000
SEED          ?= 1
TRANSACTIONS  ?= 300000
RATE          ?= 10000
FAULTS        ?= all
FAULT_EVERY   ?= 2s
# Packages that start goroutines, and the store, which many use at once.
CONCURRENT    := ./ingest/decode ./ingest/record/packed ./ingest/source/... ./window/store/... ./alerts/deliver ./recorder \
                 ./cmd/monitor ./cmd/monitor/app ./cmd/monitor/canary/... ./cmd/monitor/limit

.PHONY: help
help: ## Print this
	@echo 'usage: make TARGET [NAME=VALUE]'
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build ./monitor
	$(GO) build -o monitor ./cmd/monitor

.PHONY: demo
demo: ## Watch a real store lose updates, for DURATION (30s)
	$(GO) run ./cmd/monitor demo --duration $(DURATION)

.PHONY: test
test: ## Run all tests, and list those that were skipped for want of Java, Maven or recorded histories
	$(GO) run $(GOTESTSUM) --format pkgname --format-hide-empty-pkg -- ./...

.PHONY: race
race: ## Run the tests of the concurrent packages under the race detector (needs a C compiler)
	$(GO) test -race $(CONCURRENT)

.PHONY: bench
bench: ## Run the benchmarks that match BENCH (all)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

.PHONY: measure
measure: ## Measure time and memory beside the papers' figures: SUITE (weak, strong, or stream), ONLY those rows, recorded histories in CORPUS
	$(GO) run ./cmd/bench --suite $(SUITE) $(if $(ONLY),--only $(ONLY)) $(if $(CORPUS),--corpus $(CORPUS))

.PHONY: lint
lint: ## Run go vet and golangci-lint
	$(GO) vet ./...
	GOOS=windows $(GO) build ./...
	$(GO) run $(GOLANGCI_LINT) run

.PHONY: docs
docs: ## Write docs/commands.md and the tables of docs/configuration.md, docs/levels.md and docs/metrics.md anew, from the code
	UPDATE=1 $(GO) test -count 1 -run 'TestDocumentationHasEveryKey|TestMetricsAreDocumented|TestCommandsAreDocumented|TestDatabasesAreDocumented' ./config ./cmd/monitor ./cmd/monitor/app ./incremental/verdict

.PHONY: packaging
packaging: ## Write what packages hold beside the program into ./packaging: pages of the manual, completions, the unit
	rm -rf packaging
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) PACKAGING=$(CURDIR)/packaging $(GO) test -count 1 -run '^TestManual$$' ./cmd/monitor
	sed 's|/usr/local/bin/|/usr/bin/|' deploy/systemd/isowatch.service > packaging/isowatch.service

.PHONY: packages
packages: ## Check .goreleaser.yaml and deploy/kubernetes, and build archives, deb and rpm of this commit into ./dist (not the image and SBOMs, which want Docker and syft)
	$(GO) run $(KUSTOMIZE) build deploy/kubernetes >/dev/null
	$(GO) run $(GORELEASER) check
	$(GO) run $(GORELEASER) release --snapshot --clean --skip docker,sbom

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s)
	@set -o pipefail; $(GO) test -list '^Fuzz' ./... | awk '/^Fuzz/ { names[n++] = $$1 } \
	  $$1 == "ok" { for (i = 0; i < n; i++) print $$2, names[i]; n = 0 }' | \
	while read -r package target; do \
	  echo "== $$package $$target"; \
	  $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" || exit 1; \
	done

.PHONY: oracle
oracle: ## Compare the engine with the brute-force judge on HISTORIES (20000) histories for each way and kind, from SEED (1) on
	$(GO) test ./incremental -run 'AgreesWithOracle|AgreeWithOracle' -v -histories $(HISTORIES) -seed $(SEED) -timeout 24h

# Packages whose tests draw at random, all from one seed.
RANDOM_TESTS = $(shell $(GO) list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/internal\/lab\/seeds/ { print $$1 }')

.PHONY: volume
volume: SEED := $(shell date +%s)
volume: ## Lose records of 100,000 random histories at random, and run as many streams in pieces, killed, forgetting, sampled: nobody is accused; a fault at every write; SEED (another one each time)
	@echo 'make volume SEED=$(SEED)'
	VOLUME=1 $(GO) test $(RANDOM_TESTS) -seed $(SEED) -timeout 24h
	VOLUME=1 $(GO) test ./window/store ./cmd/monitor/app -timeout 24h
	$(GO) test ./incremental -run '^TestLosses' -v -losses 1500 -seed $(SEED) -timeout 24h
	$(GO) test ./cmd/monitor/judge -run '^TestLosses' -v -losses 5000 -mutants 500 -seed $(SEED) -timeout 24h
	$(GO) test ./internal/lab/streamtest -v -histories 1500 -seed $(SEED) -timeout 24h

.PHONY: soak
soak: ## Watch a topic while broker, disk, clocks and producer fail and the monitor is killed: TRANSACTIONS (300000), RATE (10000/s), FAULTS (all) each FAULT_EVERY (2s), SEED; 10 million at 60000/s is the long form
	$(GO) test ./internal/lab/soak -run '^TestSoak$$' -v -count 1 -timeout 24h -soak.transactions $(TRANSACTIONS) -soak.rate $(RATE) -soak.faults $(FAULTS) -soak.fault-every $(FAULT_EVERY) -soak.seed $(SEED)

.PHONY: findings
findings: ## Let the canary find out for DURATION (30s) each what databases give, side by side; writes docs/findings.md and testdata/findings
	$(GO) test ./internal/lab/findings -run '^TestFindings$$' -v -count 1 -timeout 24h -findings.duration $(DURATION)

.PHONY: drill
drill: ## Keep the canary at a PostgreSQL that is killed, stopped and cut off every 30 s, for DURATION (30s): nobody is accused
	$(GO) test ./internal/lab/findings -run '^TestDrill$$' -v -count 1 -timeout 24h -drill.duration $(DURATION)
