# Everything one does with the house. Plain `make` lists the targets.

# One optimised profile with assertions and overflow checks serves tests and simulation: built once, quick to run.
PROFILE := --profile sim
# Documentation is for those who work here, so it may point at private things.
DOCFLAGS := -D warnings -A rustdoc::private_intra_doc_links
# A fuzz run: which target, and for how long.
TARGET ?= commands
FOR ?= 60
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_targets/%.rs,%,$(sort $(wildcard tests/fuzz/fuzz_targets/*.rs)))
# What a build is compared with.
BASE ?= HEAD~1
# What is looked at for a flame graph.
WHAT ?= shard
# Where it is installed; DESTDIR stands before everything, for whoever makes packages.
PREFIX ?= /usr/local
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc,$(PREFIX)/etc)

.DEFAULT_GOAL := help
.PHONY: help run page test web-test client-test check sim faults chaos campaign attack fuzz mutants miri uring oracle bench compare bench-gate flame smoke pure cycles cover \
	install release reproducible deny sbom clean

# The page is built where npm is at hand, and only when something of it has changed; without it the binary says how.
NPM := $(shell command -v npm)
WEB_SOURCES := $(shell find web/src web/public web/index.html web/*.ts web/*.js web/package-lock.json -type f 2>/dev/null)

# The Python client is tried where python3 can make an environment for it; in CI it must.
VENV := $(shell python3 -c 'import ensurepip, venv' 2>/dev/null && echo yes)
CLIENT := clients/python
CLIENT_ENV := $(abspath $(or $(CARGO_TARGET_DIR),target)/client)
CLIENT_SOURCES := $(shell find $(CLIENT)/src $(CLIENT)/pyproject.toml $(CLIENT)/README.md -type f -not -name '*.pyc' 2>/dev/null)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(if $(NPM),page) ## start the platform with the simulated market and a demo trader (ARGS="--for 10 --seed 7")
	cargo run --release --package pitlane -- serve --config dev $(ARGS)

page: web/dist/.stamp ## build the page that the binary carries

# Not `npm ci`, which refuses a lock without the binaries of systems that we do not build on.
web/node_modules/.stamp: web/package-lock.json
	cd web && npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

web/dist/.stamp: web/node_modules/.stamp $(WEB_SOURCES)
	cd web && npm run --silent build
	@touch $@

# The binary for the tests that start it. `make test` has built it with everything else, and says so by BUILD=: built alone it has other
# features of its dependencies, and would be built a second time with many of them.
BUILD := cargo build $(PROFILE) --package pitlane

test: $(if $(NPM),page) ## all tests, with the simulation's daily portion of seeds
	cargo test --workspace $(PROFILE) $(if $(TEST),-- $(TEST))
	$(if $(NPM),$(if $(TEST),,$(MAKE) web-test BUILD=))
	$(if $(VENV)$(CI),$(if $(TEST),,$(MAKE) client-test BUILD=))

web-test: page ## the page: its types, its stores, and journeys with a browser against the real binary (FULL=1: with measurements)
	@command -v chromium >/dev/null || web/test/install-chromium
	cd web && npm run --silent check && npm test --silent
	$(BUILD)
	cd web && timeout 300 node --test --test-concurrency=1 --test-reporter=spec test/journeys.test.mjs
	$(if $(FULL),cd web && node test/measure.mjs)

# Wheels only: nothing of it is compiled here.
$(CLIENT_ENV)/.stamp: $(CLIENT_SOURCES)
	python3 -m venv $(CLIENT_ENV)
	$(CLIENT_ENV)/bin/pip install --quiet --disable-pip-version-check --no-compile --only-binary :all: '$(CURDIR)/$(CLIENT)[test]'
	@touch $@

client-test: $(CLIENT_ENV)/.stamp ## the Python client: its types, and its tests and examples against the real binary (BINARY=… takes another)
	$(if $(BINARY),,$(BUILD))
	cd $(CLIENT) && $(CLIENT_ENV)/bin/python -m mypy --cache-dir $(CLIENT_ENV)/mypy
	cd $(CLIENT) && $(if $(BINARY),BINARY=$(abspath $(BINARY))) PYTHONDONTWRITEBYTECODE=1 timeout 300 $(CLIENT_ENV)/bin/python -m pytest -p no:cacheprovider

# In the profile of the tests, so that what both need (build scripts, macros, C) is built once.
check: pure cycles ## format, lints, documentation, purity, cycles between modules
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(PROFILE) -- -D warnings
	RUSTDOCFLAGS="$(DOCFLAGS)" cargo doc --workspace --no-deps --document-private-items --quiet $(PROFILE)

sim: ## repeat one simulation (SEED=…), or run many (SEEDS=10000)
	$(if $(SEED),PITLANE_SEED=$(SEED)) $(if $(SEEDS),PITLANE_SEEDS=$(SEEDS)) \
		cargo test --package pitlane-tests $(PROFILE) --test sim -- --nocapture

faults: ## loss of power at every write, every byte of a journal flipped, disks that fail and run full, processes killed: all of it
	PITLANE_FAULTS=full cargo test --package pitlane-tests $(PROFILE) --test faults
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test server
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test fix kill
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test venue kills
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test strategies kills -- --nocapture
	PITLANE_FAULTS=full cargo test --package pitlane $(PROFILE) --test standby -- --nocapture

# In a network of its own, if we may have one: then packets can be lost in it. What is not permitted here is told and left out.
OWN_NET := $(shell unshare --net ip link set lo up 2>/dev/null && command -v iptables >/dev/null && echo yes)
ALONE := $(if $(OWN_NET),PITLANE_CHAOS_NET=own unshare --net sh -c 'ip link set lo up && exec "$$0" "$$@"')

chaos: FOR := $(if $(filter file,$(origin FOR)),300,$(FOR))
chaos: ## the real binary in every trouble, and what clients were told beside what is left (FOR=300 seconds, SEED=1)
	cargo test --package pitlane $(PROFILE) --test chaos --no-run
	$(if $(SEED),PITLANE_SEED=$(SEED)) PITLANE_CHAOS=$(FOR) $(ALONE) \
		cargo test --package pitlane $(PROFILE) --test chaos -- --nocapture in_any_trouble

campaign: ## kills, losses of power (both over a close), hostile sessions; kills of venues, standby, cluster: an hour (KILLS= CUTS= SESSIONS= SEED=)
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

attack: $(ATTACK_ENV)/bin/sslyze ## sslyze on every listener with TLS and slowhttptest on HTTP, against the default settings: two minutes (BINARY=…)
	$(if $(BINARY),,cargo build $(PROFILE) --package pitlane)
	tests/tools/attack $(or $(BINARY),$(BUILT)/sim/pitlane) $<

fuzz: ## any input into any state (TARGET=commands FOR=60); TARGET=all: each in turn; TARGET=rest: requests made up from the description of REST
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

# The tests are played with so few seeds that a change takes about a minute; the settings are in .cargo/mutants.toml.
mutants: ## changes to the lines of engine and protocols that differ from BASE (HEAD~1), one at a time: which does no test notice? (ONLY='--shard 0/4')
	@command -v cargo-mutants >/dev/null || cargo install cargo-mutants --locked
	@mkdir -p $(MUTANTS)
	@git diff $(BASE) -- engine/src protocols/src >$(MUTANTS)/change.diff
	PITLANE_SEEDS=$(or $(SEEDS),60) cargo mutants --in-diff $(MUTANTS)/change.diff --output $(MUTANTS) $(ONLY)

# Miri is a part of nightly. What it cannot run (mapped files, epoll) is left out there and runs with `make test`.
miri: ## the `unsafe` of io/sys under Miri: what it copies, and that nothing is read or written outside
	@rustup toolchain list | grep -q '^nightly' || rustup toolchain install nightly --profile minimal
	@rustup component add miri rust-src --toolchain nightly >/dev/null 2>&1
	MIRIFLAGS=-Zmiri-strict-provenance cargo +nightly miri test --package pitlane-sys --target-dir $(BUILT)/miri

uring: ## the tests of the sockets with the io_uring driver, which is not built by default
	cargo test --package pitlane --features uring $(PROFILE) --lib net::
	cargo test --package pitlane --features uring $(PROFILE) --test net --test net_guards --test net_limits --test net_tls --test doctor

oracle: ## our FIX codec beside fefix: the same frames and fields, and how fast (builds for a quarter of an hour, once)
	cargo test --release --manifest-path tests/oracle/Cargo.toml
	cargo run --release --manifest-path tests/oracle/Cargo.toml

# The binary is measured as it is started, so it is built too.
bench: ## how fast, with all conditions printed: a verdict for every row of the budget, some ten minutes after the build (target/bench)
	cargo build --release --package pitlane
	cargo run --release --package pitlane-bench --features peers -- all

compare: ## us beside brokers, FIX engines, web servers and order books that can be had here, in one table and target/compare
	cargo run --release --package pitlane-bench --features peers -- compare $(ARGS)

# The older source stands in a worktree of its own while it is built; what is built is kept for the next time.
bench-gate: ## this build beside an earlier one (BASE=HEAD~1), in turn on this machine; fails only beyond the noise it measured
	-git worktree remove --force target/gate/source 2>/dev/null
	git worktree add --detach target/gate/source $(BASE)
	cargo build --release --package pitlane-bench --manifest-path target/gate/source/Cargo.toml --target-dir target/gate/built
	git worktree remove --force target/gate/source
	cargo run --release --package pitlane-bench -- gate --base target/gate/built/release/pitlane-bench

flame: ## where the time goes, drawn into target/flame.svg (WHAT="fix --alone")
	@command -v perf >/dev/null || { echo "needs perf: apt install linux-perf"; exit 1; }
	RUSTFLAGS="-C force-frame-pointers=yes" cargo run --release --target-dir target/flame --package pitlane-bench \
		--features flame -- --flame target/flame.svg $(WHAT)

smoke: ## every bench once and tiny, so that none rots
	cargo run --release --package pitlane-bench -- smoke

pure: ## nothing in engine and protocols names a clock, a thread, a socket, a file or a float
	@tests/tools/pure --self-test
	@tests/tools/pure

cycles: ## no dependency cycle between the modules of io
	@tests/tools/cycles --self-test
	@tests/tools/cycles io/src

cover: ## lines of the engine that tests reach; fails below 90 %
	@command -v cargo-llvm-cov >/dev/null || cargo install cargo-llvm-cov --locked
	@rustup component add llvm-tools >/dev/null 2>&1
	cargo llvm-cov test --package pitlane-engine --package pitlane-tests $(PROFILE) \
		--ignore-filename-regex '^$(CURDIR)/(tests|io|protocols|bench)/|/(tests|sample)(/.*)?\.rs$$' --fail-under-lines 90

BUILT := $(or $(CARGO_TARGET_DIR),target)
RELEASED := $(or $(BINARY),$(BUILT)/release/pitlane)
SHARE := $(DESTDIR)$(PREFIX)/share

# Settings that are there already are the operator's.
install: ## binary, manual, completions, settings and a unit of systemd (PREFIX=/usr/local DESTDIR=; BINARY=… takes one that is built)
	$(if $(BINARY),,$(if $(NPM),$(MAKE) page))
	$(if $(BINARY),,cargo build --release --locked --package pitlane)
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

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
ARCHIVE := pitlane-$(VERSION)-x86_64-linux
# The time of everything in the archive: that of the commit.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
release sbom: export SOURCE_DATE_EPOCH := $(SOURCE_DATE_EPOCH)
CARGO_FOLDER := $(or $(CARGO_HOME),$(HOME)/.cargo)
# No path of the machine that builds is in the binary, whether Rust or C put it there.
REMAPPED := --remap-path-prefix=$(CURDIR)=/pitlane --remap-path-prefix=$(CARGO_FOLDER)=/cargo
MAPPED := -ffile-prefix-map=$(CURDIR)=/pitlane -ffile-prefix-map=$(CARGO_FOLDER)=/cargo

release: ## an archive with its checksum in target/archive, the same bytes wherever it is built (BINARY=… takes one that is built)
	$(if $(BINARY),,$(if $(NPM),$(MAKE) page))
	$(if $(BINARY),,RUSTFLAGS="$(REMAPPED)" CFLAGS="$(MAPPED)" cargo build --release --locked --package pitlane)
	rm -rf $(BUILT)/archive
	$(MAKE) install BINARY=$(RELEASED) PREFIX=/usr/local SYSCONFDIR=/etc DESTDIR=$(BUILT)/archive/$(ARCHIVE)
	tests/tools/sbom > $(BUILT)/archive/$(ARCHIVE)/usr/local/share/doc/pitlane/sbom.cdx.json
	cd $(BUILT)/archive && tar --create --format=gnu --sort=name --mtime=@$$SOURCE_DATE_EPOCH --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX $(ARCHIVE) | gzip --no-name --best > $(ARCHIVE).tar.gz
	rm -rf $(BUILT)/archive/$(ARCHIVE)
	cd $(BUILT)/archive && sha256sum $(ARCHIVE).tar.gz > $(ARCHIVE).tar.gz.sha256
	@cat $(BUILT)/archive/$(ARCHIVE).tar.gz.sha256

# In two places with names of different length, from nothing. Takes twice as long as a release.
reproducible: ## build the archive twice from what is committed, in two folders, and compare the bytes
	@for place in one another; do \
		rm -rf target/twice/$$place && mkdir -p target/twice && git clone --quiet . target/twice/$$place && \
		env -u CARGO_TARGET_DIR $(MAKE) -C target/twice/$$place release || exit 1; done
	cmp target/twice/one/target/archive/$(ARCHIVE).tar.gz target/twice/another/target/archive/$(ARCHIVE).tar.gz
	@rm -rf target/twice && echo "the same bytes"

# The advisories are in a repository that not every machine reaches; what is missing is told.
deny: ## licences, sources and versions of what we depend on, and known faults of it
	@command -v cargo-deny >/dev/null || cargo install cargo-deny --locked
	cargo deny check licenses bans sources
	@if cargo deny fetch db >/dev/null 2>&1; then cargo deny check --disable-fetch advisories; \
		else echo "SKIPPED: known faults (advisories) were not looked at: their database cannot be fetched here"; fi

sbom: ## what the binary is made of, in CycloneDX, into target/sbom.cdx.json
	@tests/tools/sbom --self-test
	@mkdir -p $(BUILT) && tests/tools/sbom > $(BUILT)/sbom.cdx.json && echo $(BUILT)/sbom.cdx.json

clean: ## remove what was built
	cargo clean
