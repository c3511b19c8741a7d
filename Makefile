# Every target does its own set-up; a second call costs nothing. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.speckit-setup
SPEC ?= specs/cpu_quick.yaml
# A spec for the CPU engine needs it.
ENGINE = $(if $(shell grep -s 'image: cpu' $(SPEC)),cpu-engine)
LOCK_DATE := 2026-11-27T00:00:00Z
RESOLVE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --exclude-newer $(LOCK_DATE)
COMPILE := $(RESOLVE) pyproject.toml
# make image VARIANT=flashinfer; BASE is an alternative in docker/images.lock.toml.
VARIANT ?= triton
BASE ?=

.PHONY: browser help setup run demo image verify-pins cpu-engine bench-trace calibrate bench-analysis bench-load report test test-rest test-all check format schema lock lock-check

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: $(STAMP) ## make .venv from the hash lock

$(STAMP): requirements-dev.lock pyproject.toml
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing $(VENV) && uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock; \
	else \
	  python3 -m venv $(VENV) && $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock; \
	fi
	@if command -v uv >/dev/null; then uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .; \
	else $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .; fi
	@touch $@

run: setup $(ENGINE) ## measure SPEC (default specs/cpu_quick.yaml, real SGLang on the CPU) and render its verdict
	$(BIN)/speckit run $(SPEC)

demo: setup ## the same with a simulated engine, whose truth is known: two minutes, nothing to download
	$(BIN)/speckit run specs/quickstart.yaml

image: setup ## build the image of VARIANT (triton or flashinfer) on the pinned base
	$(BIN)/python docker/build.py $(VARIANT) $(if $(BASE),--base $(BASE))

verify-pins: setup ## ask the registry whether the pinned digests are what their tags point to (needs a network)
	$(BIN)/python docker/pins.py $(if $(WRITE),--write)

cpu-engine: setup ## real SGLang on the CPU: its packages and a small target model, 2.5 GB on disk
	nice $(BIN)/python docker/sglang-cpu/install.py
	$(BIN)/speckit models fetch smollm2-135m

browser: # Debian's Chromium, in which tests open a report's page
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }

bench-trace: setup ## what the trace patch costs an iteration, one JSON line
	$(BIN)/python docker/trace/bench.py

calibrate: setup ## 500 runs of worlds with known truth -> docs/calibration.md; about half an hour
	OMP_NUM_THREADS=1 nice $(BIN)/speckit selftest --replications 500 --out docs/calibration.md

bench-analysis: setup ## time and memory of judging 20,000 to 2,000,000 rounds
	nice $(BIN)/python -m tests.bench.analysis

bench-load: setup ## what a streamed request costs the load generator, one JSON line a candidate and level
	$(BIN)/python -m tests.load.bench

report: setup ## render the newest run file again
	$(BIN)/speckit report

test: setup ## the fast suite
	$(BIN)/pytest -q -n 2 -m "not (browser or contract or docker or gpu or sglang or slow)"

test-rest: cpu-engine browser ## what the fast suite leaves out: SGLang's wheels, real servers, a browser
	$(BIN)/pytest -q -m "(browser or contract or docker or sglang or slow) and not gpu"

test-all: test test-rest ## everything this machine can run

check: setup lock-check ## format, lint, types, layers, lock and generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/speckit schema --check
	@if [ -x $(BIN)/hadolint ]; then $(BIN)/hadolint docker/Dockerfile; else echo "hadolint is not here: docker/Dockerfile was not checked"; fi

format: setup ## rewrite the sources in house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

schema: setup ## write the generated JSON Schema
	$(BIN)/speckit schema

lock: setup ## resolve the dependencies again
	$(BIN)/$(COMPILE) --output-file requirements.lock
	$(BIN)/$(COMPILE) --group dev --output-file requirements-dev.lock
	$(BIN)/$(RESOLVE) docker/build.in --output-file docker/build.lock
	$(BIN)/$(RESOLVE) --no-deps docker/flashinfer.in --output-file docker/flashinfer.lock

lock-check: setup # the locks are what pyproject.toml resolves to on LOCK_DATE
	@mkdir -p .cache && cp requirements.lock requirements-dev.lock .cache/
	@$(BIN)/$(COMPILE) --output-file .cache/requirements.lock
	@$(BIN)/$(COMPILE) --group dev --output-file .cache/requirements-dev.lock
	@diff -q requirements.lock .cache/requirements.lock && diff -q requirements-dev.lock .cache/requirements-dev.lock \
	  || { echo "the locks do not match pyproject.toml: run make lock" >&2; exit 1; }
