# make demo      train on ICD-10-CM, measure, answer a few questions, and say how to ask more
# make serve     serve the demo's model over HTTP, with a web page
# make test      run every test
# make test-cluster  install Ray and run the tests of ramify.cluster on it
# make lint      check style and the direction of imports
# make types     check types
# make stubs     generate src/ramify/_core.pyi from the compiled core
# make format    format the C++ and Python sources
# make sanitize  run the core's tests under AddressSanitizer and UndefinedBehaviorSanitizer
# make sanitize-quick    the same for wrong calls and damaged models only
# make sanitize-threads  run the tests that use threads under ThreadSanitizer
# make attack    run a million hostile inputs under the sanitizers and print what became of them (INPUTS=10000 for fewer)
# make clean     remove what the others made
#
# Each makes .venv, builds the core and installs the package first. Needed: Python 3.10 or newer and a C++20 compiler.
# Another Python:  make PYTHON=python3.12 demo

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CPP    := $(shell find core -name '*.[chi]*' -type f 2>/dev/null)
SOURCES := $(shell find core src -type f -not -name '*.pyc' 2>/dev/null) CMakeLists.txt pyproject.toml

.PHONY: demo serve test test-cluster build lint types stubs format sanitize sanitize-quick sanitize-threads attack clean help

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

demo: build
	@$(BIN)/ramify demo

# The demo's model is trained once.
serve: build
	@test -e demo/icd10/manifest.json || $(BIN)/ramify demo
	@$(BIN)/ramify serve --model demo/icd10

test: build
	$(BIN)/python -m pytest

# Ray is large and not among the tools of every day: `make test` runs the same steps in one process, and says what it leaves out.
test-cluster: build
	$(BIN)/python -m pip install -q "ray[data]>=2.40" "pyarrow>=14"
	$(BIN)/python -m pytest -n 0 tests/cluster

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=src $(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/clang-format --dry-run --Werror $(CPP)

types: build
	$(BIN)/mypy

stubs: build
	$(BIN)/python -m nanobind.stubgen -q -m ramify._core -D -p core/stub_patterns.txt -o src/ramify/_core.pyi

format: build
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

build: $(VENV)/installed

# What a machine may lack, each with the words that help.
NO_PYTHON   = ramify needs Python 3.10 or newer, and '$(PYTHON)' is not. Point at one:  make PYTHON=python3.12 demo
NO_COMPILER = No C++ compiler found. Install one:  apt-get install g++  (Debian, Ubuntu),  dnf install gcc-c++  (Fedora),  xcode-select --install  (macOS)
NO_HEADERS  = Python's header files are missing. Install them:  apt-get install python3-dev  (Debian, Ubuntu),  dnf install python3-devel  (Fedora)
NO_VENV     = '$(PYTHON)' cannot make virtual environments. Install that part:  apt-get install python3-venv  (Debian, Ubuntu)

$(VENV)/tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { echo "$(NO_PYTHON)" >&2; exit 1; }
	@$${CXX:-c++} --version >/dev/null 2>&1 || { echo "$(NO_COMPILER)" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || \
	  { echo "$(NO_HEADERS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { echo "$(NO_VENV)" >&2; exit 1; }
	@echo "Preparing $(VENV) …"
	@$(BIN)/python -m pip install -q --upgrade pip
	@$(BIN)/python -m pip install -q "scikit-build-core>=0.11" "nanobind>=2.9" "cmake>=3.22" ninja
	@touch $@

$(VENV)/installed: $(VENV)/tools $(SOURCES)
	@echo "Building the core and installing ramify, a minute or two …"
	@$(BIN)/python -m pip install -q --no-build-isolation ".[dev]"
	@touch $@

# Sanitizers. The sanitized package lies in build/<kind>/package and hides the one in .venv; its core is compiled with -O1.
# Nobody asked for Python's own leaks. The C++ library is loaded first, too, so that the sanitizer sees exceptions.
PRELOAD = LD_PRELOAD="$$(for library in $(1) stdc++; do $${CXX:-c++} -print-file-name=lib$$library.so; done | tr '\n' ' ')"
ADDRESS_PYTHON = PYTHONPATH=$(CURDIR)/build/address/package $(call PRELOAD,asan ubsan) ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
  PYTHONMALLOC=malloc $(BIN)/python
# The threads of libraries that are compiled without the sanitizer look like races: BLAS and OpenMP use one.
THREAD_PYTHON  = PYTHONPATH=$(CURDIR)/build/thread/package $(call PRELOAD,tsan) OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
  TSAN_OPTIONS="suppressions=$(CURDIR)/core/tsan_suppressions.txt halt_on_error=1 report_signal_unsafe=0 die_after_fork=0" $(BIN)/python
UNDER_ADDRESS  = $(ADDRESS_PYTHON) -m pytest -p no:cacheprovider
UNDER_THREAD   = $(THREAD_PYTHON) -m pytest -p no:cacheprovider

build/%/package: $(SOURCES) | build
	@echo "Building the core with the $* sanitizer …"
	@$(BIN)/python -m pip install -q --no-build-isolation --no-deps --upgrade --target $@ -Cbuild-dir=build/$*/cmake -Ccmake.define.RAMIFY_SANITIZE=$* .
	@touch $@

# A memory test means nothing while freed memory is held back.
SANITIZED := tests/core tests/trees/test_builders.py tests/trees/test_kmeans.py tests/data/test_xmc.py
sanitize: build/address/package
	$(UNDER_ADDRESS) $(SANITIZED) -k "not takes_no_more_memory and not need_little_more_memory"

# A minute's worth of it: calls and model files that are wrong.
sanitize-quick: build/address/package
	$(UNDER_ADDRESS) tests/core -k "bad_calls or damaged"

# Tests whose work is shared by threads. "hogwild" threads write to the same weights without locks, as its paper has it.
# ThreadSanitizer cannot follow threads that a forked child starts, which the route's test does.
THREADED := tests/core/kernels tests/core/plt tests/core/online_plt tests/core/fastxml tests/core/nearest_rows tests/core/spectral tests/core/softmax tests/core/text \
  tests/core/trees tests/attacks/test_races.py tests/attacks/test_threads.py tests/trees/test_kmeans.py
sanitize-threads: build/thread/package
	$(UNDER_THREAD) $(THREADED) -k "not hogwild and not need_little_more_memory and not route_that_is_asked"

# Attacks: damaged files, changed input, forks, interrupts and kills under AddressSanitizer; every pair of operations, a minute
# per class, under ThreadSanitizer.
INPUTS ?= 1000000
SEED   ?= 0
attack: build/address/package build/thread/package
	$(ADDRESS_PYTHON) tests/attacks/run.py --inputs $(INPUTS) --seed $(SEED)
	RAMIFY_ATTACK_SECONDS=2.2 $(UNDER_THREAD) tests/attacks/test_threads.py

clean:
	rm -rf build .venv .mypy_cache .ruff_cache .pytest_cache
