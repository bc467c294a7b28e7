# make demo      train on ICD-10-CM, measure, answer a few questions, and say how to ask more
# make test      run every test
# make lint      check style and the direction of imports
# make types     check types
# make sanitize  run the tests with the core under AddressSanitizer and UndefinedBehaviorSanitizer
# make clean     remove what the others made
#
# Each makes .venv, builds the core and installs the package first. Needed: Python 3.10 or newer and a C++20 compiler.
# Another Python:  make PYTHON=python3.12 demo

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SOURCES := $(shell find core src -type f -not -name '*.pyc' 2>/dev/null) CMakeLists.txt pyproject.toml

.PHONY: demo test build lint types sanitize clean help

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

demo: build
	@$(BIN)/ramify demo

test: build
	$(BIN)/python -m pytest

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=src $(BIN)/lint-imports --no-cache --no-logo

types: build
	$(BIN)/mypy

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

# The core's tests under AddressSanitizer and UndefinedBehaviorSanitizer, in an environment of their own. The C++ library is
# loaded first, too, so that the sanitizer sees exceptions. Python's own leaks are not ours to find, and a memory test
# means nothing while freed memory is held back.
SANITIZED := tests/core tests/trees/test_builders.py tests/trees/test_kmeans.py tests/data/test_xmc.py
sanitize:
	$(MAKE) VENV=.venv-sanitize .venv-sanitize/tools
	@echo "Building the core with sanitizers …"
	.venv-sanitize/bin/python -m pip install -q --no-build-isolation -Cbuild-dir=build/sanitize -Ccmake.define.RAMIFY_SANITIZE=ON ".[dev]"
	LD_PRELOAD="$$(for library in asan ubsan stdc++; do $${CXX:-c++} -print-file-name=lib$$library.so; done | tr '\n' ' ')" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	  .venv-sanitize/bin/python -m pytest -p no:cacheprovider $(SANITIZED) -k "not takes_no_more_memory"

clean:
	rm -rf build .venv .venv-sanitize .mypy_cache .ruff_cache .pytest_cache
