# Targets for building, testing, measuring and packaging. CONTRIBUTING.md explains the test targets.
GO ?= go
SETUP := test/setup.sh
# Each module is built and tested with the versions in its own go.mod, as `go install` does.
export GOWORK := off
# The suite of cert-manager reads these when it is loaded. It runs kubectl only for manifests, and there are none.
export TEST_ASSET_ETCD := $(CURDIR)/.cache/bin/etcd
export TEST_ASSET_KUBE_APISERVER := $(CURDIR)/.cache/bin/kube-apiserver
export TEST_ASSET_KUBECTL := kubectl
BUILD := CGO_ENABLED=0 $(GO) build -trimpath
TEST := $(GO) test -timeout 20m

.PHONY: run nameplane build install generate quick test test-all test-gateway lint tidy cross fuzz vuln \
	bench bench-egress bench-explain bench-hostile deb image dist publish-release clean

run: nameplane ## start a server on loopback, with its data in ./data
	bin/nameplane serve --data data --dns 127.0.0.1:5300 --http 127.0.0.1:8053

nameplane: ## build the server and command line into bin
	$(BUILD) -o bin/ ./cmd/nameplane

build: nameplane ## build all programs into bin
	cd kubernetes && $(BUILD) -o ../bin/ ./cmd/...

install: build ## install programs, manual pages and completions below PREFIX (/usr/local) and DESTDIR
	install -D -t $(DESTDIR)$(PREFIX)/bin bin/nameplane bin/nameplane-egress bin/nameplane-coredns bin/nameplane-service
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 docs/man/*.1
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man8 docs/man/*.8
	mkdir -p $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	bin/nameplane completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/nameplane
PREFIX ?= /usr/local

generate: ## deep copies and CRDs from the types in kubernetes/api, manual pages, and the generated parts of docs/reference
	kubernetes/api/generate.sh
	$(GO) test ./cmd/nameplane ./internal/daemon ./internal/explain/check ./internal/httpapi/openapi -run $(GENERATORS) -update
	cd kubernetes && $(GO) test ./api/crds ./cmd/nameplane-egress ./cmd/nameplane-service ./internal/controller/... ./plugin/dnsnameresolver -run $(GENERATORS) -update
GENERATORS := '^(TestManualPages|Test[A-Za-z]*Page)$$'

# CONTRIBUTING.md says what each of the three test targets runs; test/docs.TestMakeTargets compares it with this file.

quick: ## check format, vet, run unit tests; needs no other DNS servers
	$(FORMAT)
	$(GO) vet ./...
	$(TEST) $(UNIT)

test: ## install the packages that the tests of nameplane need, then run the tests
	$(SETUP) test
	$(FORMAT)
	$(GO) vet ./...
	$(TEST) -race $(RACE)
	$(TEST) -race -cpu 1 $(BUBBLES)
	$(TEST) $(PLAIN)
	$(TEST) -p 4 -parallel 8 $(SUITES)
	cd test/clients && $(GO) vet ./...
	cd test/clients && $(TEST) -race -cpu 1 ./openapi
	cd test/clients && $(TEST) .

test-all: test ## also test packages, clients that require Kubernetes, Kubernetes and OVN
	$(SETUP) test-all
	$(STATICCHECK) ./...
	$(TEST) -tags soak ./test/hostile
	$(TEST) -tags built -run TestBuiltPages ./test/howto
	$(TEST) ./test/packaging
	cd test/clients && $(TEST) -tags built -run '^(TestExternalDNS|TestDNSControl)$$' .
	cd test/clients/externaldns014 && $(TEST) .
	cd test/clients/externaldns && $(TEST) .
	cd test/clients/certmanager && $(TEST) .
	cd test/clients/boulder && $(TEST) .
	cd kubernetes && $(GO) vet ./...
	cd kubernetes && $(STATICCHECK) ./...
	cd kubernetes && $(TEST) -race -cpu 1 ./internal/... ./plugin/...
	cd kubernetes && $(TEST) ./api/... ./cmd/... ./test/...
	@test -x .cache/bin/traefik || echo 'make test-all: SKIPPED kubernetes/test/gateway: no Traefik is built; run make test-gateway' >&2

test-gateway: ## test nameplane service behind a real Traefik; the first run builds it, which takes about 25 minutes
	$(SETUP) test-gateway
	cd kubernetes && $(TEST) -count 1 -v ./test/gateway

FORMAT := @test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'gofmt the files above'; exit 1; }
STATICCHECK := $(CURDIR)/.cache/bin/staticcheck
UNIT := $(shell find ./internal ./cmd -name '*_test.go' -printf '%h\n' | sort -u)
# The slowest suite comes first. Suites mostly wait, so more of them run at a time than there are processors.
SUITES := ./test/explain/real $(filter-out ./test/explain/real,$(shell find ./test ./bench ./deploy \( -path ./test/clients -o -path ./test/packaging \) -prune -o -name '*_test.go' -printf '%h\n' | sort -u))
# Packages that start goroutines run under the race detector. The race detector of Go 1.26 sometimes crashes when two
# processors run timers of one synctest bubble. Packages with bubbles run on one processor, which finds the same races.
RACE := $(filter $(addprefix ./internal/,publish dnsserver access budget store% daemon cli explain/resolvers),$(UNIT))
BUBBLES := $(filter $(addprefix ./internal/,httpapi% mec resolve% forward follow transfer alias dnspeer registry \
	explain/gather explain/probe explain/scans lab simnet),$(UNIT))
PLAIN := $(filter-out $(RACE) $(BUBBLES),$(UNIT))

fuzz: ## run every fuzz target for 15 seconds
	test/fuzz.sh 15s

bench: nameplane ## compare with other DNS servers; write docs/bench.md
	$(SETUP) bench
	$(GO) run ./bench -write

bench-egress: build ## measure egress firewalls with a real API server and OVN; needs root
	$(SETUP) test-all
	GOWORK= $(GO) run ./kubernetes/bench/egress -bin bin -write docs/bench-egress.md

bench-explain: nameplane ## measure speed, accuracy and load of explain in the lab and with real resolvers; needs root
	$(SETUP) test
	$(GO) run ./bench/explain -bin bin/nameplane

bench-hostile: ## each attack, and ten minutes of all at once: fails if another tenant waits too long; needs root
	$(SETUP) test
	$(TEST) -run '^$$' -bench BesideHostile -benchtime 5s ./internal/httpapi/designate
	$(TEST) -count 1 -tags soak -run TestBesideEach -v ./test/hostile -each 5s -p50 10ms
	$(TEST) -count 1 -tags soak -run TestSoak -v ./test/hostile -soak 10m -p99 50ms

lint: ## run golangci-lint with .golangci.yml in all modules
	$(SETUP) lint
	$(LINT) run ./...
	cd kubernetes && $(LINT) run ./...
	for m in test/clients test/clients/externaldns014 test/clients/externaldns test/clients/certmanager test/clients/boulder; do \
		(cd $$m && $(LINT) run ./...) || exit 1; done
LINT := $(CURDIR)/.cache/bin/golangci-lint

tidy: generate ## fail if a go.mod or a generated file is not up to date
	for m in $(MODULES); do (cd $$m && $(GO) mod tidy -diff) || exit 1; done
	git diff --exit-code docs/man docs/reference kubernetes/api deploy/kubernetes
MODULES := . kubernetes test/clients test/clients/externaldns014 test/clients/externaldns test/clients/certmanager \
	test/clients/boulder

cross: ## build and vet all programs for GOARCH
	CGO_ENABLED=0 $(GO) vet ./cmd/... ./internal/...
	cd kubernetes && CGO_ENABLED=0 $(GO) vet ./cmd/... ./internal/... ./plugin/...
	$(BUILD) -o dist/$(GOARCH)/ ./cmd/nameplane
	cd kubernetes && $(BUILD) -o ../dist/$(GOARCH)/ ./cmd/...
GOARCH ?= $(shell $(GO) env GOARCH)
export GOARCH

# Not part of `make test-all`: it needs https://vuln.go.dev, and its result changes without a change of the code.
VULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0
vuln: ## check the linked code for known vulnerabilities; needs the internet
	$(VULNCHECK) ./...
	cd kubernetes && $(VULNCHECK) ./...

deb: nameplane ## build a Debian package of nameplane into dist
	$(SETUP) deb
	deploy/debian/build.sh

image: nameplane ## build a container image of nameplane, tagged IMAGE, with podman, buildah or docker
	mkdir -p dist/image
	cp bin/nameplane /etc/ssl/certs/ca-certificates.crt deploy/Dockerfile dist/image/
	BUILDAH_FORMAT=docker $(BUILDER) build -t $(IMAGE) dist/image # the OCI format has no health check
IMAGE ?= nameplane
BUILDER ?= $(notdir $(firstword $(wildcard $(foreach b,podman buildah docker,/usr/bin/$b /usr/local/bin/$b))))

dist: ## build the files of a release: programs, Debian packages, bills of materials, checksums
	$(SETUP) dist
	deploy/release.sh

publish-release: ## create a draft release of the tag with the files of dist; needs gh
	gh release create --draft --verify-tag "$$(git describe --exact-match --tags)" dist/*

clean: ## delete everything that was built; keep ./data
	rm -rf bin dist .cache
