#!/bin/sh
# Resolves the CPU engine's packages again: everything but torch, and torch as a CUDA build with what it loads.
# Usage, from the root of the repository: sh docker/sglang-cpu/lock.sh
set -eu
here=docker/sglang-cpu
compile="${UV:-.venv/bin/uv} pip compile --quiet --python-platform x86_64-manylinux_2_34 --python-version 3.11
  --generate-hashes --no-header --no-annotate --exclude-newer 2026-11-27T00:00:00Z"

$compile --config-file $here/uv.toml --no-emit-package torch requirements-cpu-engine.in --output-file requirements-cpu-engine.lock

known=$(sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package \1/p' requirements-cpu-engine.lock)
# shellcheck disable=SC2086
echo 'torch==2.13.0' | $compile --no-config --constraint requirements-cpu-engine.lock $known - --output-file $here/torch-cuda.lock
