# make demo   trains on ICD-10-CM, shows predictions and what to ask next
# make test   lint-free? `make lint types`; this runs every test
# Both make .venv, build the core and install first; nothing else is needed.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SOURCES := $(shell find core src -type f -not -name '*.pyc' 2>/dev/null) CMakeLists.txt pyproject.toml

.PHONY: demo test build lint types sanitize clean help

help:
	@sed -n '1,3p' Makefile | sed 's/^# //'

demo: build
	$(BIN)/ramify demo

test: build
	$(BIN)/python -m pytest

lint: $(VENV)/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: build
	$(BIN)/mypy

build: $(VENV)/installed

$(VENV)/tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "ramify needs Python 3.10 or newer; point PYTHON at one: make PYTHON=python3.11 demo"; exit 1; }
	@$${CXX:-c++} --version >/dev/null 2>&1 || \
	  { echo "No C++ compiler found. Install one first:  apt-get install g++   (Debian, Ubuntu)   or   dnf install gcc-c++   (Fedora)   or   xcode-select --install   (macOS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python cannot make virtual environments here. Install that part first:  apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q "scikit-build-core>=0.11" "nanobind>=2.9" "cmake>=3.22" ninja
	@touch $@

$(VENV)/installed: $(VENV)/tools $(SOURCES)
	$(BIN)/python -m pip install -q --no-build-isolation ".[dev]"
	@touch $@

# The core's tests under AddressSanitizer and UndefinedBehaviorSanitizer, in an environment of their own.
sanitize:
	$(MAKE) VENV=.venv-sanitize .venv-sanitize/tools
	.venv-sanitize/bin/python -m pip install -q --no-build-isolation -Cbuild-dir=build/sanitize -Ccmake.define.RAMIFY_SANITIZE=ON ".[dev]"
	LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc .venv-sanitize/bin/python -m pytest -p no:cacheprovider

clean:
	rm -rf build .venv .venv-sanitize .mypy_cache .ruff_cache .pytest_cache
