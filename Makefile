# SPDX-License-Identifier: Apache-2.0
#
# A thin door to CMake. Everything is built by presets:
#
#   make build                    release build of library, benchmarks and examples in build/
#   make test PRESET=tsan         build and test with ThreadSanitizer in build-tsan/
#   CC=clang make test            the same with clang in build-clang/
#   make test ARGS='-L unit'      hand arguments to ctest
#   make install PREFIX=/usr DESTDIR=/tmp/root
#   make install PRESET=asan PREFIX=/opt/blitz-asan

PRESET ?= release
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
ARGS   ?=
CONFIGURE_ARGS ?=

# A compiler that was asked for has its own build directories.
compiler := $(if $(filter default undefined,$(origin CC)),,$(notdir $(lastword $(CC))))
suffix   := $(if $(filter-out cc gcc,$(compiler)),-$(compiler))
BUILD    ?= build$(if $(filter-out release,$(PRESET)),-$(PRESET))$(suffix)
ifneq ($(compiler),)
export CC
endif

configure = mkdir -p $(BUILD) && : >$(BUILD)/configure.log || \
    { echo "No way to write to $(BUILD). Another place: make $@ BUILD=/tmp/blitz-build" >&2; exit 1; }; \
    cmake --preset $(PRESET) -B $(BUILD) $(CONFIGURE_ARGS) >$(BUILD)/configure.log 2>&1 || \
    { cat $(BUILD)/configure.log >&2; exit 1; }

# What sudo has built belongs to whoever called it, and can be built again without sudo.
give_back = if [ -n "$$SUDO_UID" ] && [ "$$(id -u)" = 0 ]; then \
    chown -R "$$SUDO_UID:$$SUDO_GID" $(BUILD); fi

.PHONY: build tests run test fuzz mutants kernels bench lint site soak install clean

build:
	@tools/bootstrap build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) --target product
	@$(give_back)

# The demo, with the library under it and nothing else.
run:
	@tools/bootstrap build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) --target example_demo
	@$(give_back)
	@$(BUILD)/examples/demo $(ARGS)

# The library, the examples and every test program; or the TARGETS.
tests:
	@tools/bootstrap build test
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) $(if $(TARGETS),--target $(TARGETS))

# A model that is not through after a while says so and is taken up again in CI and in soak. One test
# more than there are cores: some only wait. UNDER='tools/stall --hogs' runs them on a bad machine.
test: tests
	@MODEL_SECONDS=$${MODEL_SECONDS:-1} $(UNDER) ctest --test-dir $(BUILD) -j $(TEST_JOBS) --output-on-failure --no-tests=error $(ARGS)
	@sed -n '/^[0-9/]* Testing: /h; /^skipped: /{G; s/skipped: \(.*\)\n.*Testing: \(.*\)/\2 was skipped: \1/p; }' \
	    $(BUILD)/Testing/Temporary/LastTest.log

# New inputs for everything that parses; `make fuzz ARGS='http --seconds 600'`.
fuzz:
	@tools/bootstrap build clang
	@tools/fuzz $(ARGS)

mutants:
	@tools/bootstrap build test
	@tools/mutants $(ARGS)

# The tests on other kernels, in an emulated machine: an hour; `make kernels ARGS=--quick` is shorter.
# Status 77: there is none, and none can be downloaded.
kernels:
	@tools/kernels $(ARGS) || [ $$? = 77 ]

# Blitz and its peers, in turn: half an hour on two cores; writes docs/benchmarks.
# `make bench ARGS='--groups locks --cycles 3'` is shorter.
bench: build
	@bench/peers/setup
	@bench/report $(ARGS)

lint:
	@tools/bootstrap build lint
	@tools/lint

# The guide, the reference, the notes and the measurements as a static site in build/site, and the manual
# pages in build/man; with everything that they refer to checked.
site:
	@tools/bootstrap site
	@tools/docs/build.py check
	@tools/docs/build.py site build/site
	@rm -rf build/man && tools/docs/build.py man build/man
	@mandoc -Tlint -W warning $$(grep -rL '^\.so' build/man)

# Hours, not minutes: with both compilers and all sanitizers long stress runs, and all tests on a bad
# machine; deeper models, every mutant, ten minutes for each fuzz target; all tests on other kernels.
soak: soak-gcc soak-clang
	@MODEL_PREEMPTIONS=$${MODEL_PREEMPTIONS:-5} MODEL_SECONDS=3600 $(MAKE) test PRESET=model \
	    CONFIGURE_ARGS=-DBLITZ_TIMEOUT_SCALE=120
	@$(MAKE) mutants
	@$(MAKE) fuzz ARGS='--seconds 600'
	@$(MAKE) kernels ARGS="--quick --kernel '*'"
	@$(MAKE) kernels

soak-%:
	@tools/bootstrap all
	@for preset in release asan tsan; do \
	    echo "== stress: $* $$preset"; \
	    SOAK=1 CC=$* $(MAKE) test PRESET=$$preset CONFIGURE_ARGS=-DBLITZ_TIMEOUT_SCALE=60 \
	        ARGS='-L stress' || exit 1; \
	    echo "== on a bad machine: $* $$preset"; \
	    CC=$* $(MAKE) test PRESET=$$preset CONFIGURE_ARGS=-DBLITZ_TIMEOUT_SCALE=60 $(BAD) || exit 1; \
	done

# Without those that drive compilers and debuggers: these are not ours.
BAD = UNDER='tools/stall --hogs' \
    ARGS='-L "unit|fault|stress" -E "frames|compile_fail" --repeat until-fail:5'

install: CONFIGURE_ARGS += -DCMAKE_INSTALL_PREFIX=$(PREFIX)
install:
	@tools/bootstrap build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) --target blitz blitz_static
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) >$(BUILD)/install.log; status=$$?; $(give_back); \
	    if [ $$status != 0 ]; then echo "Not installed into $(DESTDIR)$(PREFIX): without sudo?" >&2; fi; exit $$status
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi # programs find libblitz.so
	@echo "Installed into $(DESTDIR)$(PREFIX); $(BUILD)/install_manifest.txt lists the files"
	@if [ -z "$(DESTDIR)" ]; then tools/install-hints $(BUILD) $(PREFIX); fi

clean:
	rm -rf build build-*
