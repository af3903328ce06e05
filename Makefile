# Build, test, measure and install. `make` without a target lists the targets.

# Tests and simulation share one optimised profile with assertions and overflow checks: it is built
# once and runs fast.
PROFILE := --profile sim
# The documentation is for developers of the project, so it may link to private items.
DOCFLAGS := -D warnings -A rustdoc::private_intra_doc_links
# The target of a fuzz run, and its duration in seconds.
TARGET ?= commands
FOR ?= 60
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_targets/%.rs,%,$(sort $(wildcard tests/fuzz/fuzz_targets/*.rs)))
# The commit with which a build is compared.
BASE ?= HEAD~1
# The benchmark of a flame graph.
WHAT ?= shard
# The installation prefix. Packages set DESTDIR, which is put before every path.
PREFIX ?= /usr/local
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc,$(PREFIX)/etc)

# Rust may be installed where rustup installs it, and the shell may not know it yet.
CARGO_FOLDER := $(or $(CARGO_HOME),$(HOME)/.cargo)
export PATH := $(CARGO_FOLDER)/bin:$(PATH)
# Installs what is missing. SETUP=: leaves it out.
SETUP ?= config/setup

.DEFAULT_GOAL := help
.PHONY: help setup-run setup-check setup-test setup-docs run fresh tidy links lint-python lint-web format docs docs-api reference page screenshot pictures test web-test client-test engine engine-test bench-backtest bench-client guide-test examples-test quantstats without-python check sim depth faults venue-isolation chaos campaign attack fuzz mutants miri oracle bench compare arena bench-namespaces bench-gate flame smoke pure cycles cover \
	install package deploy-test release reproducible deny sbom clean

# The page is built if npm is installed and a source has changed. Without the page, the binary shows
# how to build it. Not `:=`, because the set-up may install npm and Python first.
NPM = $(shell command -v npm)
WEB_SOURCES := $(shell find web/src web/public web/index.html web/*.ts web/*.js web/package-lock.json -type f 2>/dev/null)

# The Python client is tested if python3 can create a virtual environment; in CI it must be.
VENV = $(shell python3 -c 'import ensurepip, venv' 2>/dev/null && echo yes)
CLIENT := clients/python
CLIENT_ENV := $(abspath $(or $(CARGO_TARGET_DIR),target)/client)
CLIENT_SOURCES := $(shell find $(CLIENT)/src $(CLIENT)/pyproject.toml $(CLIENT)/README.md -type f -not -name '*.pyc' 2>/dev/null)

# The files of deploy/ are tested if promtool is installed.
PROMTOOL := $(shell command -v promtool)
DPKG_DEB := $(shell command -v dpkg-deb)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup-run setup-check setup-test setup-docs:
	@$(SETUP) $(@:setup-%=%)

# The profile `quick`, without Parquet, builds in a fraction of the time of `release`;
# CONTRIBUTING.md compares them. `make run FEATURES=` builds with Parquet.
FEATURES ?= --no-default-features
run: setup-run ## start the platform with the simulated market and a demo trader (ARGS="--for 10 --seed 7")
	$(if $(NPM),@$(MAKE) --no-print-directory page)
	cargo run --profile quick --package pitlane $(FEATURES) -- serve --config dev $(ARGS)

fresh: ## try `make run` and `make test` in a bare Debian made by debootstrap: an hour, needs root (ARGS="--suite trixie")
	@$(SETUP) fresh
	tests/tools/fresh $(ARGS)

page: web/dist/.stamp ## build the web page, which the binary contains

# Not `npm ci`, which rejects a lock file without the binaries of other operating systems.
web/node_modules/.stamp: web/package-lock.json
	cd web && npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

web/dist/.stamp: web/node_modules/.stamp $(WEB_SOURCES)
	cd web && npm run --silent build
	@touch $@

# Builds the binary for the tests that start it. `make test` has already built it and passes BUILD=:
# built alone, the binary has other features of its dependencies, so many of them would be built
# again.
BUILD := cargo build $(PROFILE) --package pitlane

# Each starts servers of its own on free ports, so that they run side by side. Without python3 and
# venv there are no clients to test with; in CI there must be.
AFTER_TESTS = guide-test $(if $(VENV)$(CI),client-test engine-test examples-test,without-python) $(if $(PROMTOOL)$(CI),deploy-test)

without-python:
	@echo "SKIPPED: the Python client and the examples need python3 with venv: apt install python3-venv"

# Tests of the running service spend half of their time waiting, so twice as many as there are cores
# run at once.
TEST_THREADS := $(shell expr 2 \* $$(nproc))

test: setup-test ## run all tests, with the default number of simulation seeds
	$(if $(NPM),@$(MAKE) --no-print-directory page)
	RUST_TEST_THREADS=$(TEST_THREADS) cargo test --workspace $(PROFILE) $(if $(TEST),-- $(TEST))
	$(if $(NPM),$(if $(TEST),,$(MAKE) web-test BUILD=))
	$(if $(TEST),,$(MAKE) --jobs=2 --output-sync=target $(AFTER_TESTS) BUILD=)

web-test: page ## test the web page: types, stores, and a browser against the real binary (FULL=1: also measure)
	@command -v chromium >/dev/null || $(SETUP) test
	cd web && npm run --silent check && npm test --silent
	$(BUILD)
	cd web && timeout 450 node --test --test-concurrency=1 --test-reporter=spec test/journeys.test.mjs
	$(if $(FULL),cd web && node test/measure.mjs)

# Only wheels, so that nothing is compiled.
$(CLIENT_ENV)/.stamp: $(CLIENT_SOURCES)
	python3 -m venv $(CLIENT_ENV)
	$(CLIENT_ENV)/bin/pip install --quiet --disable-pip-version-check --no-compile --only-binary :all: '$(CURDIR)/$(CLIENT)[test]'
	@touch $@

client-test: $(CLIENT_ENV)/.stamp ## test the Python client: types, and tests and examples against the real binary (BINARY=…)
	$(if $(BINARY),,$(BUILD))
	cd $(CLIENT) && $(CLIENT_ENV)/bin/python -m mypy --cache-dir $(CLIENT_ENV)/mypy
	cd $(CLIENT) && $(if $(BINARY),BINARY=$(abspath $(BINARY))) PYTHONDONTWRITEBYTECODE=1 timeout 300 $(CLIENT_ENV)/bin/python -m pytest -p no:cacheprovider

bench-client: $(CLIENT_ENV)/.stamp ## measure the CPU time that the Python client spends on an order (BINARY=…)
	$(if $(BINARY),,$(BUILD))
	cd $(CLIENT) && $(CLIENT_ENV)/bin/python tools/bench_orders.py $(if $(BINARY),--binary $(abspath $(BINARY)))

# For the examples and for the blocks of the guide in Python. The client has its own environment,
# which shows that what it declares is enough.
EXAMPLES_ENV := $(abspath $(or $(CARGO_TARGET_DIR),target)/examples/env)

$(EXAMPLES_ENV)/.stamp: tests/examples/requirements.txt $(CLIENT_SOURCES)
	python3 -m venv $(EXAMPLES_ENV)
	$(EXAMPLES_ENV)/bin/pip install --quiet --disable-pip-version-check --no-compile --only-binary :all: '$(CURDIR)/$(CLIENT)[pandas]' -r tests/examples/requirements.txt
	@touch $@

# The native engine of back-tests, as `pip install ./clients/python-engine` would install it, but of
# the crates that the tests have built already.
ENGINE := clients/python-engine
ENGINE_SO := $(abspath $(or $(CARGO_TARGET_DIR),target)/sim/deps/libpitlane_native.so)
ENGINE_FOLDER := $(abspath $(or $(CARGO_TARGET_DIR),target)/python-engine)

engine: ## build the native engine of the Python client into target/python-engine
	$(if $(BUILD),cargo build $(PROFILE) --package pitlane-python)
	mkdir -p $(ENGINE_FOLDER)/pitlane_engine
	cp $(ENGINE)/python/pitlane_engine/* $(ENGINE_FOLDER)/pitlane_engine/
	install -m 755 $(ENGINE_SO) $(ENGINE_FOLDER)/pitlane_engine/pitlane_native.abi3.so

engine-test: $(EXAMPLES_ENV)/.stamp engine ## test back-tests of Python strategies with the native engine
	cd $(ENGINE) && PYTHONPATH=$(ENGINE_FOLDER) PYTHONDONTWRITEBYTECODE=1 timeout 300 $(EXAMPLES_ENV)/bin/python -m pytest -p no:cacheprovider

# Builds the fastest engine, for minutes, in an environment of its own.
BENCH_ENV := $(abspath $(or $(CARGO_TARGET_DIR),target)/bench-backtest)
bench-backtest: ## compare back-tests in Rust, in Python and in NautilusTrader on the same ticks (ARGS="--ticks 2000000")
	python3 -m venv $(BENCH_ENV)
	$(BENCH_ENV)/bin/pip install --quiet --disable-pip-version-check ./$(CLIENT) './$(ENGINE)[pandas]' nautilus_trader==1.221.0
	$(BENCH_ENV)/bin/python $(ENGINE)/bench/compare.py --nautilus bench/nautilus/cross.py $(ARGS)

# Without virtual environments the pages with Python are skipped.
GUIDE_BINARY = $(or $(BINARY),$(or $(CARGO_TARGET_DIR),target)/sim/pitlane)

guide-test: $(if $(VENV)$(CI),$(EXAMPLES_ENV)/.stamp engine) ## run every command of README and user guide, and compare its list of metrics (BINARY=…)
	$(if $(BINARY),,$(BUILD))
	tests/tools/guide --self-test
	PYTHONPATH=$(ENGINE_FOLDER) timeout 300 tests/tools/guide --binary $(GUIDE_BINARY) $(if $(VENV)$(CI),--python $(EXAMPLES_ENV)/bin/python)
	timeout 120 tests/tools/reference --binary $(GUIDE_BINARY)

reference: ## write the reference of settings, reason codes and metrics from their sources (BINARY=…)
	$(if $(BINARY),,$(BUILD))
	tests/tools/reference --write --binary $(GUIDE_BINARY)

MDBOOK := $(or $(shell command -v mdbook),$(abspath $(or $(CARGO_TARGET_DIR),target)/tools/bin/mdbook))

$(MDBOOK):
	cargo install mdbook --locked --version 0.4.52 --root $(abspath $(or $(CARGO_TARGET_DIR),target)/tools)

docs: setup-docs $(MDBOOK) ## build the user guide as a book (target/book)
	tests/tools/book --mdbook $(MDBOOK) --output $(or $(CARGO_TARGET_DIR),target)/book

screenshot: page ## take the picture of the page for README and user guide (BINARY=…)
	@command -v chromium >/dev/null || $(SETUP) test
	$(if $(BINARY),,$(BUILD))
	cd web && $(if $(BINARY),BINARY=$(abspath $(BINARY))) node test/screenshot.mjs ../docs/images/page.png

pictures: page ## take a picture of every panel in both themes and four widths, to look at (target/pictures; BINARY=…)
	@command -v chromium >/dev/null || $(SETUP) test
	$(if $(BINARY),,$(BUILD))
	cd web && $(if $(BINARY),BINARY=$(abspath $(BINARY))) node test/pictures.mjs $(abspath $(or $(CARGO_TARGET_DIR),target))/pictures

examples-test: $(EXAMPLES_ENV)/.stamp engine ## run every program of examples/ against the real binary, and check its output (BINARY=…)
	$(if $(BINARY),,$(if $(BUILD),$(BUILD) --bins --examples))
	cd tests/examples && $(if $(BINARY),BINARY=$(abspath $(BINARY))) PYTHONPATH=$(ENGINE_FOLDER) PYTHONDONTWRITEBYTECODE=1 timeout 900 $(EXAMPLES_ENV)/bin/python -m pytest -p no:cacheprovider

# Its packages are large, so it is not a part of `make test`.
QUANTSTATS_ENV := $(abspath $(or $(CARGO_TARGET_DIR),target)/quantstats/env)

$(QUANTSTATS_ENV)/.stamp: tests/quantstats/requirements.txt
	python3 -m venv $(QUANTSTATS_ENV)
	$(QUANTSTATS_ENV)/bin/pip install --quiet --disable-pip-version-check --only-binary :all: -r tests/quantstats/requirements.txt
	@touch $@

quantstats: $(QUANTSTATS_ENV)/.stamp ## compare the statistics of a simulation with those of quantstats (BINARY=…)
	$(if $(BINARY),,$(BUILD))
	$(QUANTSTATS_ENV)/bin/python tests/quantstats/compare.py $(abspath $(GUIDE_BINARY))

# Also packs the binary of the tests, which has the same files around it as a release.
deploy-test: ## test deploy/: metrics, rules and dashboards with promtool and Prometheus, the Debian package (BINARY=…)
	$(if $(BINARY),,$(BUILD))
	tests/tools/deploy $(or $(BINARY),$(BUILT)/sim/pitlane)
	$(if $(DPKG_DEB),tests/tools/package $$(deploy/deb/build $(or $(BINARY),$(BUILT)/sim/pitlane) $(BUILT)/package-test))

# Uses the profile of the tests, so that build scripts, macros and C code are built once.
check: setup-check pure cycles tidy links ## check format, lints, documentation, purity, prose, links, and cycles between modules (Rust, Python, web)
	@tests/tools/setup
	@tests/tools/pgo
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(PROFILE) -- -D warnings
	RUSTDOCFLAGS="$(DOCFLAGS)" cargo doc --workspace --no-deps --document-private-items --quiet $(PROFILE)
	$(if $(VENV)$(CI),@$(MAKE) --no-print-directory lint-python)
	$(if $(NPM)$(CI),@$(MAKE) --no-print-directory lint-web)

# One version, so that the format is the same everywhere.
RUFF_VERSION := 0.17.5
LINT_ENV := $(abspath $(or $(CARGO_TARGET_DIR),target)/lint)
RUFF := $(LINT_ENV)/bin/ruff

$(LINT_ENV)/.ruff-$(RUFF_VERSION):
	python3 -m venv $(LINT_ENV)
	$(LINT_ENV)/bin/pip install --quiet --disable-pip-version-check --only-binary :all: ruff==$(RUFF_VERSION)
	@touch $@

lint-python: $(LINT_ENV)/.ruff-$(RUFF_VERSION) ## check format and lints of all Python with ruff
	$(RUFF) check --quiet
	$(RUFF) format --check --quiet

# Apart from the packages of the page, which `make run` fetches.
web/lint/node_modules/.stamp: web/lint/package-lock.json
	cd web/lint && npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

lint-web: web/lint/node_modules/.stamp web/node_modules/.stamp ## check format and lints of the web page with prettier and eslint
	cd web/lint && npm run --silent check

format: $(LINT_ENV)/.ruff-$(RUFF_VERSION) web/lint/node_modules/.stamp web/node_modules/.stamp ## format Rust, Python and the web page
	cargo fmt --all
	$(RUFF) check --quiet --fix
	$(RUFF) format --quiet
	python3 $(CLIENT)/tools/derive_sync.py
	cd web/lint && npm run --silent format

# What `pub` offers to other crates. `make check` documents private items too.
docs-api: setup-docs ## document the public interfaces of all crates (target/doc)
	RUSTDOCFLAGS="$(DOCFLAGS)" cargo doc --workspace --no-deps --exclude pitlane-tests --exclude pitlane-testkit --exclude pitlane-bench $(PROFILE)

tidy: ## check width and words of comments and documents, and that named paths exist
	tests/tools/tidy

links: ## check links between documents, and that the reference pages agree with their sources
	@tests/tools/links --self-test
	tests/tools/links
	tests/tools/reference

depth: ## rebuild books from 10 million events, with slow readers, disconnects and restarts (EVENTS=…)
	PITLANE_DEPTH_EVENTS=$(or $(EVENTS),10000000) cargo test --package pitlane-tests $(PROFILE) --test depth -- --nocapture

sim: ## repeat one simulation (SEED=…), or run many (SEEDS=10000)
	$(if $(SEED),PITLANE_SEED=$(SEED)) $(if $(SEEDS),PITLANE_SEEDS=$(SEEDS)) \
		cargo test --package pitlane-tests $(PROFILE) --test sim -- --nocapture

faults: ## test all faults: power loss at every write, flipped journal bytes, failing and full disks, kills
	PITLANE_FAULTS=full cargo test --package pitlane-tests $(PROFILE) --test faults
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test server
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test fix kill
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test venue kills
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test strategies kills -- --nocapture
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test standby -- --nocapture

venue-isolation: ## measure orders to one venue while another one hangs, floods or dies: two minutes
	PITLANE_ISOLATION=full cargo test --package pitlane $(PROFILE) --test venue hangs_floods_or_dies -- --nocapture

# Uses a separate network namespace if permitted, so that packets can be dropped. The test reports
# and skips what is not permitted.
OWN_NET := $(shell unshare --net ip link set lo up 2>/dev/null && command -v iptables >/dev/null && echo yes)
ALONE := $(if $(OWN_NET),PITLANE_CHAOS_NET=own unshare --net sh -c 'ip link set lo up && exec "$$0" "$$@"')

chaos: FOR := $(if $(filter file,$(origin FOR)),300,$(FOR))
chaos: ## inject faults into the real binary, and compare acknowledged with recovered state (FOR=300 SEED=1)
	cargo test --package pitlane $(PROFILE) --test chaos --no-run
	$(if $(SEED),PITLANE_SEED=$(SEED)) PITLANE_CHAOS=$(FOR) $(ALONE) \
		cargo test --package pitlane $(PROFILE) --test chaos -- --nocapture under_any_disturbance

# Kills and power losses also happen over a market close. Further runs kill venues, standby and
# cluster.
campaign: ## one hour of kills, power losses and hostile sessions (KILLS= CUTS= SESSIONS= SEED=)
	$(if $(SEED),PITLANE_SEED=$(SEED)) PITLANE_CAMPAIGN_KILLS=$(or $(KILLS),500) PITLANE_CAMPAIGN_CUTS=$(or $(CUTS),100) \
		PITLANE_CAMPAIGN_SESSIONS=$(or $(SESSIONS),1000) cargo test --package pitlane $(PROFILE) --test chaos -- --nocapture the_campaign
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test venue kills
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test standby -- --nocapture
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test fix -- --nocapture kill
	PITLANE_HOSTILE=$(or $(SESSIONS),1000) cargo test --package pitlane $(PROFILE) --test auth -- --nocapture hostile_sessions

ATTACK_ENV := $(abspath $(or $(CARGO_TARGET_DIR),target)/attack)

$(ATTACK_ENV)/bin/sslyze:
	python3 -m venv $(ATTACK_ENV)
	$(ATTACK_ENV)/bin/pip install --quiet --disable-pip-version-check sslyze

attack: $(ATTACK_ENV)/bin/sslyze ## run sslyze on TLS listeners and slowhttptest on HTTP with default settings: two minutes (BINARY=…)
	$(if $(BINARY),,cargo build $(PROFILE) --package pitlane)
	tests/tools/attack $(or $(BINARY),$(BUILT)/sim/pitlane) $<

fuzz: ## fuzz a target (TARGET=commands FOR=60; all: each in turn; rest: requests from the OpenAPI description)
ifeq ($(TARGET),all)
	@for target in $(FUZZ_TARGETS); do $(MAKE) --no-print-directory fuzz TARGET=$$target || exit 1; done
else ifeq ($(TARGET),rest)
	PITLANE_REST_FUZZ=$(FOR) cargo test --package pitlane $(PROFILE) --test description -- --nocapture the_service_is
else
	@command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked
	@mkdir -p tests/fuzz/found/$(TARGET)
	cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none $(TARGET) \
		tests/fuzz/found/$(TARGET) tests/fuzz/corpus/$(TARGET) -- -max_total_time=$(FOR)
endif

MUTANTS := $(abspath $(or $(CARGO_TARGET_DIR),target)/mutants)

# The settings and the accepted survivors are in .cargo/mutants.toml. All mutants are in one build,
# which takes some minutes; then each takes a fraction of a second.
mutants: ## mutate lines of engine and protocols changed since BASE (HEAD~1); list the undetected (ARGS='--only engine/src/view')
	@command -v cargo-mutants >/dev/null || cargo install cargo-mutants --locked
	@mkdir -p $(MUTANTS)
	@git diff $(BASE) -- engine/src engine/strategy/src protocols/src >$(MUTANTS)/change.diff
	cargo run --quiet --manifest-path tests/mutants/Cargo.toml --target-dir $(MUTANTS)/tool -- $(MUTANTS) $(MUTANTS)/change.diff $(ARGS)

# Miri needs the nightly toolchain. It skips what it cannot run (mapped files, epoll), which
# `make test` runs.
miri: ## run the `unsafe` code of io/sys under Miri, to detect invalid reads and writes
	@rustup toolchain list | grep -q '^nightly' || rustup toolchain install nightly --profile minimal
	@rustup component add miri rust-src --toolchain nightly >/dev/null 2>&1
	MIRIFLAGS=-Zmiri-strict-provenance cargo +nightly miri test --package pitlane-sys --target-dir $(BUILT)/miri

oracle: ## compare the FIX codec with fefix: frames, fields and speed (the first build takes 15 minutes)
	cargo test --release --manifest-path tests/oracle/Cargo.toml
	cargo run --release --manifest-path tests/oracle/Cargo.toml

# The benchmarks start the binary, so it is built too. PGO=1 measures builds with a profile.
BENCH = $(if $(PGO),$(BUILT)/pgo/pitlane-bench,cargo run --release --package pitlane-bench --features peers --)

bench: ## run all benchmarks, with conditions and a verdict for each budget: ten minutes (target/bench; PGO=1)
	$(if $(PGO),bench/pgo --bench,cargo build --release --package pitlane)
	$(BENCH) all

compare: ## compare with available brokers, FIX engines, web servers and order books (target/compare; PGO=1 after `make bench PGO=1`)
	$(BENCH) compare $(ARGS)

# Outside the workspace, with a C interface. What is missing in ARENA is cloned and built there.
ARENA ?= target/arena
arena: ## run the public arena for matching engines with our book, our shard and two peers (ARENA=checkout ARGS="--rounds 5")
	bench/arena/run $(ARENA) $(ARGS)

# OUT is the folder for the results.
bench-namespaces: ## measure FIX between two network namespaces: other stacks than loopback, needs root (OUT=folder ARGS="--rounds 5")
	cargo build --release --package pitlane --package pitlane-bench
	bench/namespaces --out $(or $(OUT),$(BUILT)/namespaces) $(ARGS)

# The older source is built in a separate worktree; its build output is kept for the next run.
bench-gate: ## compare this build with an earlier one (BASE=HEAD~1) in turn; fails only beyond the measured noise
	-git worktree remove --force target/gate/source 2>/dev/null
	git worktree add --detach target/gate/source $(BASE)
	cargo build --release --package pitlane-bench --manifest-path target/gate/source/Cargo.toml --target-dir target/gate/built
	git worktree remove --force target/gate/source
	cargo run --release --package pitlane-bench -- gate --base target/gate/built/release/pitlane-bench

flame: ## draw a flame graph into target/flame.svg (WHAT="fix --alone")
	@command -v perf >/dev/null || { echo "needs perf: apt install linux-perf"; exit 1; }
	RUSTFLAGS="-C force-frame-pointers=yes" cargo run --release --target-dir target/flame --package pitlane-bench \
		--features flame -- --flame target/flame.svg $(WHAT)

smoke: ## run every benchmark once with a small size, so that each keeps working
	cargo run --release --package pitlane-bench -- smoke

pure: ## check that engine and protocols use no clock, thread, socket, file or float
	@tests/tools/pure --self-test
	@tests/tools/pure

cycles: ## check that the modules of each crate in io have no dependency cycle
	@tests/tools/cycles --self-test
	@tests/tools/cycles io/*/src

cover: ## measure the line coverage of the engine; fails below 90 %
	@command -v cargo-llvm-cov >/dev/null || cargo install cargo-llvm-cov --locked
	@rustup component add llvm-tools >/dev/null 2>&1
	cargo llvm-cov test --package pitlane-engine --package pitlane-strategy --package pitlane-tests $(PROFILE) \
		--ignore-filename-regex '^$(CURDIR)/(tests|io|protocols|bench)/|/(tests|sample)(/.*)?\.rs$$' --fail-under-lines 90

BUILT := $(or $(CARGO_TARGET_DIR),target)
# PGO=1 builds with a profile of our own benchmarks, which takes twice as long and some minutes.
RELEASED := $(or $(BINARY),$(BUILT)/$(if $(PGO),pgo,release)/pitlane)
BUILD_RELEASE := $(if $(PGO),bench/pgo,cargo build --release --locked --package pitlane)
SHARE := $(DESTDIR)$(PREFIX)/share

# Existing settings belong to the operator and are not overwritten.
install: ## install binary, manual, completions, settings and systemd unit (PREFIX=/usr/local DESTDIR= PGO=1 BINARY=…)
	$(if $(BINARY),,$(if $(NPM),$(MAKE) page))
	$(if $(BINARY),,$(BUILD_RELEASE))
	install -D -m 755 $(RELEASED) $(DESTDIR)$(PREFIX)/bin/pitlane
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	$(RELEASED) man $(SHARE)/man/man1
	$(RELEASED) completions bash > $(SHARE)/bash-completion/completions/pitlane
	$(RELEASED) completions zsh > $(SHARE)/zsh/site-functions/_pitlane
	$(RELEASED) completions fish > $(SHARE)/fish/vendor_completions.d/pitlane.fish
	install -D -m 644 -t $(SHARE)/doc/pitlane README.md SECURITY.md LICENSE config/default.toml
	install -D -m 644 -t $(SHARE)/pitlane/refdata config/refdata/*.csv
	install -D -m 644 config/nats/pitlane.conf $(SHARE)/pitlane/nats/pitlane.conf
	install -D -m 644 config/pitlane.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/pitlane.conf
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed -e 's|/usr/local/bin/|$(PREFIX)/bin/|' -e 's|/etc/pitlane/|$(SYSCONFDIR)/pitlane/|' config/pitlane.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/pitlane.service
	test -e $(DESTDIR)$(SYSCONFDIR)/pitlane/pitlane.toml || install -D -m 644 config/service.toml $(DESTDIR)$(SYSCONFDIR)/pitlane/pitlane.toml

package: ## build a Debian package in target/package (PGO=1; BINARY=…: an existing binary)
	$(if $(BINARY),,$(if $(NPM),$(MAKE) page))
	$(if $(BINARY),,$(BUILD_RELEASE))
	@deploy/deb/build $(RELEASED) $(BUILT)/package

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
ARCHIVE := pitlane-$(VERSION)-x86_64-linux
# The time of all files in the archive: the time of the commit.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
release sbom: export SOURCE_DATE_EPOCH := $(SOURCE_DATE_EPOCH)
# Removes the paths of the build machine from the binary, for Rust and for C.
REMAPPED := --remap-path-prefix=$(CURDIR)=/pitlane --remap-path-prefix=$(CARGO_FOLDER)=/cargo
MAPPED := -ffile-prefix-map=$(CURDIR)=/pitlane -ffile-prefix-map=$(CARGO_FOLDER)=/cargo

release: ## build a reproducible archive with its checksum in target/archive (PGO=1: with a profile; BINARY=…: an existing binary)
	$(if $(BINARY),,$(if $(NPM),$(MAKE) page))
	$(if $(BINARY),,RUSTFLAGS="$(REMAPPED)" CFLAGS="$(MAPPED)" $(BUILD_RELEASE))
	rm -rf $(BUILT)/archive
	$(MAKE) install BINARY=$(RELEASED) PREFIX=/usr/local SYSCONFDIR=/etc DESTDIR=$(BUILT)/archive/$(ARCHIVE)
	tests/tools/sbom > $(BUILT)/archive/$(ARCHIVE)/usr/local/share/doc/pitlane/sbom.cdx.json
	cd $(BUILT)/archive && tar --create --format=gnu --sort=name --mtime=@$$SOURCE_DATE_EPOCH --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX $(ARCHIVE) | gzip --no-name --best > $(ARCHIVE).tar.gz
	rm -rf $(BUILT)/archive/$(ARCHIVE)
	cd $(BUILT)/archive && sha256sum $(ARCHIVE).tar.gz > $(ARCHIVE).tar.gz.sha256
	@cat $(BUILT)/archive/$(ARCHIVE).tar.gz.sha256

# Uses two new folders with names of different lengths. Takes twice as long as a release.
reproducible: ## build the archive twice from the commit, in two folders, and compare the bytes
	@for place in one another; do \
		rm -rf target/twice/$$place && mkdir -p target/twice && git clone --quiet . target/twice/$$place && \
		env -u CARGO_TARGET_DIR $(MAKE) -C target/twice/$$place release || exit 1; done
	cmp target/twice/one/target/archive/$(ARCHIVE).tar.gz target/twice/another/target/archive/$(ARCHIVE).tar.gz
	@rm -rf target/twice && echo "the same bytes"

# Not every machine can reach the repository of advisories; the target reports if it cannot.
deny: ## check licences, sources and versions of dependencies, and security advisories
	@command -v cargo-deny >/dev/null || cargo install cargo-deny --locked
	cargo deny check licenses bans sources
	@if cargo deny fetch db >/dev/null 2>&1; then cargo deny check --disable-fetch advisories; \
		else echo "SKIPPED: security advisories were not checked, because their database cannot be fetched"; fi

sbom: setup-check ## write the bill of materials of the binary (CycloneDX) to target/sbom.cdx.json
	@tests/tools/sbom --self-test
	@mkdir -p $(BUILT) && tests/tools/sbom > $(BUILT)/sbom.cdx.json && echo $(BUILT)/sbom.cdx.json

clean: ## remove build outputs
	cargo clean
