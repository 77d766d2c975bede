# `make run` and `make test` are the main targets; `make help` lists the rest.
.DEFAULT_GOAL := help
CARGO ?= cargo
ROUNDS ?= 20
CASES ?= 200000
export CARGO_TERM_COLOR ?= auto

.PHONY: help run web cluster test tools check fmt gen fuzz schemathesis clients profile bench growth crash power scenarios release

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: release ## build and start the server with its web client on http://127.0.0.1:8080, data in ./data
	target/release/nexo serve

web: web/dist/index.html ## build the web client, which the server's binary contains

web/dist/index.html: web/package-lock.json $(shell find web/src web/public web/index.html web/*.ts web/*.js sdk/typescript/src -type f 2>/dev/null)
	cd web && npm ci --no-audit --no-fund && npm run build

cluster: release ## run MariaDB, Redis and three nodes on this machine, on ports 8081 to 8083: PORT=8081
	scripts/cluster

test: check tools web ## run all checks and tests
	target/venv/bin/python scripts/check-deploy
	$(CARGO) test --workspace --exclude nexo-sdk --locked
	scripts/test-nodes
	scripts/test-sdks

tools: ## install what the tests need in addition to Rust
	scripts/tools.sh

check: ## check formatting and lints; warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

fmt: ## format everything
	$(CARGO) fmt --all

gen: ## regenerate the generated pages
	UPDATE_DOCS=1 $(CARGO) test -q -p nexo-wire documentation
	UPDATE_DOCS=1 $(CARGO) test -q -p nexo --test openapi documentation
	UPDATE_DOCS=1 $(CARGO) test -q -p nexo --test permissions documentation

fuzz: ## run the long form of the decoders' property tests: CASES=200000
	PROPTEST_CASES=$(CASES) $(CARGO) test --release -p nexo-wire --test typed --test numbered --test dotted

schemathesis: ## test a real server with requests generated from docs/openapi.json: EXAMPLES=30
	scripts/schemathesis

clients: ## generate clients from docs/openapi.json with two generators and run them against a real server
	scripts/openapi-clients

profile: release ## show where the processor time of a message goes (needs linux-perf): ARGS="--window 8"
	scripts/profile $(ARGS)

bench: release ## measure the whole table of docs/performance.md (under ten minutes): MESSAGES=10000000
	scripts/bench

growth: ## measure whether cost grows with ten million messages (about five minutes, 10 GB of disk)
	$(CARGO) run --release --bin nexo -- bench growth

crash: ## run the long form of the kill -9 tests: ROUNDS=20
	NEXO_CRASH_ROUNDS=$(ROUNDS) $(CARGO) test --release --test crash -- --nocapture
	NEXO_CRASH_ROUNDS=$(ROUNDS) $(CARGO) test --release --test two_phase_faults under_load -- --nocapture

power: ## run the long form of the power-cut tests, on a loop device (takes root): ROUNDS=20
	NEXO_POWER_ROUNDS=$(ROUNDS) $(CARGO) test -p nexo --test power_cut -- --nocapture

scenarios: release ## run the long form of the SDK scenarios: 10,000 messages each way on a bad network
	cd sdk/typescript && npm ci --no-audit --no-fund && npm run build
	$(CARGO) build --release --locked -p nexo-sdk --example driver
	node sdk/scenarios/run.mjs --long
	node sdk/scenarios/run.mjs --long --sdk rust

release: web ## build target/release/nexo, with its symbols in nexo.debug beside it
	$(CARGO) build --release --locked --bin nexo
	scripts/split-symbols target/release/nexo
