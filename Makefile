GO ?= go
FUZZTIME ?= 60s
export GO FUZZTIME COUNT ARGS FUZZ
export PATH := $(PATH):/usr/local/go/bin

.PHONY: help check-go run test test-long lint bench bench-engine bench-rules bench-gateway bench-redis bench-doors bench-rls bench-telemetry bench-pages bench-fleet bench-sources chaos overload defer-kill conformance accuracy fuzz flood mutants sim docs release

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24
	@scripts/check-go.sh || true

check-go:
	@scripts/check-go.sh

run: check-go ## start the gateway in front of a small API and print curl commands to try (ARGS=--listen.gateway=127.0.0.1:8081)
	$(GO) build -o bin/ ./cmd/tidegate
	bin/tidegate serve --demo -c deploy/example/tidegate.yaml $(ARGS)

# All of these compile as scripts/build.sh does, so that each package is compiled once. Only the race detector needs cgo.
test test-long lint: export GOFLAGS := $(GOFLAGS) -trimpath
test test-long lint: export CGO_ENABLED := 0

test: check-go ## vet and test everything, with the race detector where it can find anything (COUNT=3, ARGS='-run Name -v')
	@scripts/test-deps.sh
	@scripts/test.sh

test-long: check-go ## slow: the same with all random histories and combinations of values, for hours
	@scripts/test-deps.sh
	@TIDEGATE_LONG=1 scripts/test.sh

lint: check-go ## run the linters pinned in tools/go.mod
	@scripts/lint.sh

docs: check-go ## write what pages show of the code and of example files: settings, examples, references
	$(GO) test ./internal/cli ./internal/telemetry -run ShowsWhatIsTrue -update

bench: bench-engine ## the same as bench-engine

bench-engine: check-go ## measure the engine beside its rivals (CHECK=1: fail below the bars)
	cd bench && $(GO) run ./engine $(if $(CHECK),-check)

bench-rules: check-go ## measure matching among 10 and 1000 rules, and loading 100,000 (CHECK=1: fail below the bars)
	cd bench && $(GO) run ./rules $(if $(CHECK),-check)

bench-gateway: check-go ## measure the gateway beside nginx and Caddy (CHECK=1: fail below the bars)
	@scripts/bench-deps.sh
	cd bench && $(GO) run ./gateway $(if $(CHECK),-check)

bench-redis: check-go ## measure Tidegate on Redis beside redis_rate, throttled and itself (CHECK=1: fail below the bars)
	@scripts/test-deps.sh
	cd bench && $(GO) run ./redis $(if $(CHECK),-check)

bench-doors: check-go ## measure CL.THROTTLE beside INCR of redis-server, and the HTTP check beside nginx (CHECK=1: fail below the bars)
	@scripts/test-deps.sh
	@scripts/bench-deps.sh
	cd bench && $(GO) run ./doors $(if $(CHECK),-check)

bench-rls: check-go ## measure the service for Envoy beside a gRPC server that decides nothing and envoyproxy/ratelimit (CHECK=1: fail below the bars)
	@scripts/test-deps.sh
	cd bench && $(GO) run ./rls $(if $(CHECK),-check) $(ARGS)

bench-telemetry: check-go ## measure what metrics and lists of offenders cost: decisions and calls watched and not (CHECK=1: fail below the bars)
	cd bench && $(GO) run ./telemetry $(if $(CHECK),-check) $(ARGS)

bench-pages: check-go ## measure what 1,000 open pages of the dashboard take of a core (CHECK=1: fail above the bar)
	cd bench && $(GO) run ./pages $(if $(CHECK),-check) $(ARGS)

bench-fleet: check-go ## measure leases and exchanged counts: processes on one key; admissions are replayed (CHECK=1: fail below the bars)
	@scripts/test-deps.sh
	cd bench && $(GO) run ./fleet $(if $(CHECK),-check) $(ARGS)

bench-sources: check-go ## change rules in etcd, Redis and an HTTP server while three gateways answer 5,000 requests a second (RATE=5000)
	@scripts/test-deps.sh
	TIDEGATE_TEST_RATE=$(or $(RATE),5000) $(GO) test -count=1 -run '^TestRulesFromSources$$' -v ./internal/serve

chaos: check-go ## break Redis in every way under three gateways; writes docs/chaos.md (ROW=regexp picks rows, and writes nothing; ARGS=-list)
	@scripts/test-deps.sh
	cd bench && $(GO) run ./chaos $(if $(ROW),-row '$(ROW)',-update ../docs/chaos.md) $(ARGS)

overload: check-go ## ask a gateway and its upstream for five times what they can do; writes docs/img/overload.svg (CHECK=1: fail below the bars)
	cd bench && $(GO) run ./overload -plot ../docs/img/overload.svg $(if $(CHECK),-check) $(ARGS)

defer-kill: check-go ## slow: kill gateways, and Redis, while 10,000 orders are deferred to 50 a second, and look for lost ones
	TIDEGATE_LONG=1 $(GO) test -count=1 -timeout 30m -run '^TestServe$$/^deferred_requests_and_kill' -v ./internal/serve

conformance: check-go ## compare the gateway with real servers and tools; writes internal/dev/readings/readings.tsv (PART=paths picks one)
	@scripts/conformance.sh $(PART)

accuracy: check-go ## compare every algorithm with the exact log: tables, and the plots of docs/algorithms.md
	$(GO) run ./internal/dev/accuracy -out docs/img -update docs/algorithms.md

fuzz: check-go ## fuzz every target for FUZZTIME, 60s by default (FUZZ=regexp selects)
	@scripts/fuzz.sh

flood: check-go ## slow: test the memory bound with floods of fresh keys, by every algorithm (ARGS="-case default" picks some)
	cd bench && $(GO) run ./flood $(ARGS)

mutants: check-go ## break every algorithm in ten ways and more, and check that store/storetest fails each time (ONLY=regexp)
	@scripts/test-deps.sh
	cd bench && $(GO) run ./mutants $(if $(ONLY),-only '$(ONLY)')

sim: check-go ## run random fleets in virtual time, 200 million decisions, and look for broken promises (ARGS='-decisions 5000000 -seed 7', ARGS=-faults)
	cd bench && $(GO) run ./sim $(ARGS)

release: check-go ## build static binaries for Linux and macOS into dist, with checksums (CHECK=1: twice, and compare)
	@CHECK='$(CHECK)' scripts/release.sh
