# Everything a person needs is a target here; each is a few lines, so that this file can be read in one go.
GO ?= go
SETUP := test/setup.sh
# Programs are built from the versions in the go.mod of their own module, as `go install` builds them.
BUILD := GOWORK=off CGO_ENABLED=0 $(GO) build -trimpath

.PHONY: run build generate test check race fuzz bench bench-egress bench-explain clean

run: ## start a server on loopback, with its data in ./data
	$(BUILD) -o bin/ ./cmd/nameplane
	bin/nameplane serve --data data --dns 127.0.0.1:5300 --http 127.0.0.1:8053

build: ## all three programs, into bin
	$(BUILD) -o bin/ ./cmd/...
	cd kubernetes && $(BUILD) -o ../bin/ ./cmd/...

generate: ## deep copies and CRDs, from the types in kubernetes/api
	kubernetes/api/generate.sh

test: ## install what the tests need, then run everything
	$(SETUP) test
	$(MAKE) check race

check: ## format, vet, staticcheck and all tests
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'gofmt the files above'; exit 1; }
	$(GO) vet $(ALL)
	.cache/bin/staticcheck $(ALL)
	$(GO) test -timeout 20m $(ALL)
ALL := ./... ./kubernetes/... ./test/clients/...

race: ## the packages that own goroutines, under the race detector
	$(GO) test -race -timeout 20m $(RACE)
	$(GO) test -race -cpu 1 -timeout 20m $(RACE_BUBBLES)
RACE := ./internal/publish ./internal/dnsserver ./internal/access ./internal/store/...
# The race detector of Go 1.26 crashes now and then where two processors run timers of one synctest bubble. Packages that
# live in bubbles get one processor: what happens before what is found out in the same way.
RACE_BUBBLES := ./internal/httpapi/... ./test/clients/openapi ./internal/mec ./internal/resolve/... ./internal/forward ./internal/follow \
	./internal/transfer ./internal/alias ./internal/dnspeer ./kubernetes/internal/... ./kubernetes/plugin/... \
	./internal/registry ./internal/explain/gather ./internal/explain/scans ./internal/lab ./internal/simnet

fuzz: ## every fuzz target, a few seconds each
	test/fuzz.sh 15s

bench: ## ratios against the servers people run; docs/bench.md has the last results
	$(SETUP) bench
	$(BUILD) -o bin/ ./cmd/nameplane
	$(GO) run ./bench -write

bench-egress: build ## the figures of egress firewalls by name, on a real API server and a real OVN; needs root
	$(SETUP) test
	$(GO) run ./kubernetes/bench/egress -bin bin -write docs/bench-egress.md

bench-explain: build ## how fast, right and harmless explain is, in the lab and against real resolvers; needs root
	$(SETUP) test
	$(GO) run ./bench/explain -bin bin/nameplane

clean: ## what was built; ./data stays
	rm -rf bin .cache
