# Verbs. CMakeLists.txt describes the build; this file only knows how to ask for it.
BUILD  := build
CMAKE  := cmake -S . -G Ninja
# Tests are built with everything that finds faults; what is shipped is built for speed.
ASAN   := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DHOLDFAST_WERROR=ON -DHOLDFAST_TESTS=ON \
          -DHOLDFAST_SANITIZE=address,undefined
TSAN   := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DHOLDFAST_WERROR=ON -DHOLDFAST_TESTS=ON \
          -DHOLDFAST_SANITIZE=thread
OPTIMIZED := -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOLDFAST_TESTS=ON
CTEST  := ctest --output-on-failure --parallel 2
# Integration tests run real servers in real time. On a virtual machine that stands still for a second
# they miss a bound through nobody's fault: they alone get a second chance, and the output shows it.
TWICE  := -L integration --repeat until-pass:2

.PHONY: all test test-poll test-sql tsan sim sim-quorum sim-build mutants chaos mixed ids-storm fuzz demo record bench bench-peers \
        bench-compare bench-scale interop install uninstall deb deb-test format packages clean

# The first one: plain `make` builds and installs nothing.
all:
	@$(CMAKE) -B $(BUILD) >/dev/null
	@cmake --build $(BUILD)

packages:
	@tools/install-packages

# Mutants are hunted without sanitizers, which are for the real thing: seven times as fast.
test: packages all
	@$(CMAKE) -B $(BUILD)/sim $(OPTIMIZED) >/dev/null
	@cmake --build $(BUILD)/sim --target holdfast-sim holdfast-quorum-sim
	@$(CMAKE) -B $(BUILD)/asan $(ASAN) -DHOLDFAST_RELEASE_DIR=$(CURDIR)/$(BUILD) \
	    -DHOLDFAST_HUNTER_DIR=$(CURDIR)/$(BUILD)/sim >/dev/null
	@cmake --build $(BUILD)/asan
	@$(CTEST) --test-dir $(BUILD)/asan -L 'house|unit|sim'
	@$(CTEST) --test-dir $(BUILD)/asan $(TWICE)

# Without epoll: what has to do with own loops, and with the threads and descriptors of a client.
POLL   := own_loop|watch_set|async|fork|teardown|examples|starved|memory|transport|threads
test-poll: packages all
	@$(CMAKE) -B $(BUILD)/poll $(ASAN) -DHOLDFAST_POLL=ON \
	    -DHOLDFAST_RELEASE_DIR=$(CURDIR)/$(BUILD) >/dev/null
	@cmake --build $(BUILD)/poll
	@$(CTEST) --test-dir $(BUILD)/poll -L unit -R '$(POLL)'
	@$(CTEST) --test-dir $(BUILD)/poll $(TWICE) -R '$(POLL)'

# The fence guard and the flash sale on PostgreSQL and MariaDB, which are started for this.
test-sql:
	@tools/install-packages postgresql mariadb-server libpq-dev libmariadb-dev
	@$(CMAKE) -B $(BUILD)/asan $(ASAN) -DHOLDFAST_RELEASE_DIR=$(CURDIR)/$(BUILD) >/dev/null
	@cmake --build $(BUILD)/asan --target sql_fence holdfast-flashsale
	@tools/test-sql $(BUILD)/asan

tsan: packages all
	@$(CMAKE) -B $(BUILD)/tsan $(TSAN) -DHOLDFAST_RELEASE_DIR=$(CURDIR)/$(BUILD) >/dev/null
	@cmake --build $(BUILD)/tsan
	@$(CTEST) --test-dir $(BUILD)/tsan -L unit
	@$(CTEST) --test-dir $(BUILD)/tsan $(TWICE)

# Proof. SEEDS=n [FIRST=s] runs n seeds, SEED=s [MUTANT=name] replays one with its trace.
SEEDS   := 1000
FIRST   := 1
SECONDS := 60
SIM     := $(BUILD)/sim/tests/sim/holdfast-sim
QUORUM  := $(BUILD)/sim/tests/sim/holdfast-quorum-sim

sim-build: packages
	@$(CMAKE) -B $(BUILD)/sim $(OPTIMIZED) \
	    $(if $(OLD_FOLDER),-DHOLDFAST_OLD=$(OLD_FOLDER)) >/dev/null
	@cmake --build $(BUILD)/sim

sim: sim-build
	@$(SIM) $(if $(SEED),--seed $(SEED) --trace,--seeds $(SEEDS) --first $(FIRST) --jobs 2) \
	    $(if $(MUTANT),--mutant $(MUTANT))
	@$(if $(SEED)$(MUTANT),,$(MAKE) --no-print-directory sim-quorum)

# The world with several servers; NODES=n for always so many.
sim-quorum: sim-build
	@$(QUORUM) $(if $(SEED),--seed $(SEED) --trace,--seeds $(SEEDS) --first $(FIRST) --jobs 2) \
	    $(if $(MUTANT),--mutant $(MUTANT)) $(if $(NODES),--nodes $(NODES))

# KEEP=1 writes the seeds that catch mutants to the lists with which `make test` begins: whoever
# changes what worlds draw does that, or the hunts of `make test` become long.
HUNT := --mutants --jobs 2 $(if $(KEEP),--keep)
mutants: sim-build
	@$(SIM) $(HUNT) --kept tests/sim/prey.txt
	@$(QUORUM) $(HUNT) --kept tests/sim/quorum/prey.txt
	@tests/unit/mutants.py $(BUILD)/sim/tests/unit

chaos: sim-build
	@$(BUILD)/sim/tests/chaos/holdfast-chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# Clients of the commit OLD and of this tree share locks for SECONDS, on one server and on a quorum,
# and are killed; then times are compared. The default is the last commit of the release before this
# one: whoever changes the wire makes sure that this passes, and writes what is slower into the
# upgrade notes.
BEFORE := 80681e2
MIXED  := $(BUILD)/sim/tests/mixed/holdfast-mixed
mixed: packages
	@old=$$(tools/build-old $(BUILD) $(or $(OLD),$(BEFORE))) && \
	    $(MAKE) --no-print-directory sim-build OLD_FOLDER=$$old
	@failed=0; for servers in 1 3; do \
	    $(MIXED) --old $(MIXED)-old --new $(MIXED)-new --servers $$servers --measure \
	        --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) || failed=1; \
	done; exit $$failed

# Sixteen processes take so many ids, while some of them and the server are killed.
IDS := 10000000
ids-storm: sim-build
	@$(BUILD)/sim/tests/integration/integration_ids_storm $(IDS)

fuzz:
	@tools/install-packages clang libclang-rt-14-dev
	@CC=clang $(CMAKE) -B $(BUILD)/fuzz -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 \
	    -DHOLDFAST_TESTS=ON -DHOLDFAST_FUZZ=ON >/dev/null
	@cmake --build $(BUILD)/fuzz
	@tests/fuzz/run.sh $(BUILD)/fuzz $(SECONDS)

demo: packages all
	@tools/demo $(BUILD)
	@echo; examples/demo.sh $(BUILD) flashsale
	@echo; examples/demo.sh $(BUILD) flashsale --chaos --only 3,4,5,6

# The picture of the README; takes as long as it plays.
record: packages all
	@tools/record $(BUILD)

bench: packages all
	@$(BUILD)/bench/holdfast-bench --json $(BUILD)/bench.jsonl

# One client with up to a million locks, and a million names; about seven minutes.
bench-scale: packages all
	@rm -f $(BUILD)/bench-scale.jsonl
	@$(BUILD)/bench/holdfast-bench --json $(BUILD)/bench-scale.jsonl scale

# Beside other libraries and databases: PEERS=a,b and WORKLOADS=w1,w4 select. Writes
# build/peers/results.json, docs/benchmarks.md and the comparison in the READMEs.
PEERS_RUN := bench/peers/run.py --build $(BUILD)

bench-peers: packages all
	@$(PEERS_RUN) $(if $(PEERS),--peers $(PEERS)) $(if $(WORKLOADS),--workloads $(WORKLOADS))

# Is this tree slower than the commit OLD? Both take turns. ROUNDS=n (5 or more) and WORKLOADS=a,b;
# QUICK=1 measures for a moment only. Writes build/compare/results.json.
bench-compare: packages all
	@bench/compare/run.py --build $(BUILD) \
	    --old $(or $(OLD),$(error OLD=<commit> says what to compare with)) \
	    $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(WORKLOADS),--workloads $(WORKLOADS)) \
	    $(if $(QUICK),--quick)

# Other libraries and Holdfast contend for one key; writes docs/interop.md.
interop: packages all
	@$(PEERS_RUN) --interop $(if $(PEERS),--peers $(PEERS))

# PREFIX, DESTDIR and LIBDIR as usual. What CMake has written down last is what uninstall removes.
PREFIX := /usr/local

install: all
	@$(CMAKE) -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) \
	    $(if $(LIBDIR),-DCMAKE_INSTALL_LIBDIR=$(LIBDIR)) >/dev/null
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD)

uninstall:
	@sed 's|^|$(DESTDIR)|' $(BUILD)/install_manifest.txt | xargs -d '\n' rm -fv

# Debian packages into build/deb; deb-test installs them into a fresh Debian 12 (needs root).
deb:
	@tools/install-packages debhelper dpkg-dev lintian
	@tools/build-deb $(BUILD)

deb-test: deb
	@tools/install-packages debootstrap
	@tools/test-deb $(BUILD)

format:
	@git ls-files '*.c' '*.h' '*.cpp' '*.hpp' | xargs clang-format -i

clean:
	@rm -rf $(BUILD)
