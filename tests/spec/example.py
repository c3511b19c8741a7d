"""One complete spec to break: every section is written out, and every kind of arm stands in it."""

from __future__ import annotations

GOOD = """\
schema_version: 1
name: example
title: An example
question: Does it load?
models:
  target:
    path: org/target
    revision: "1111111"
    dtype: bfloat16
    quantization: modelopt_fp4
    gated: true
    trust_remote_code: false
  draft:
    path: org/draft
    revision: "2222222"
    quantization: unquant
    context_length: 4096
engine:
  runtime: docker
  sglang: 0.5.15.post1
  image: triton
  world: crossover
  startup_timeout_s: 900.0
host:
  gpu: NVIDIA RTX A6000
  gpus: 1
  min_driver: "580"
server:
  attention_backend: triton
  page_size: 1
  context_length: 2048
  max_running_requests: 32
  max_total_tokens: 65536
  mem_fraction_static: 0.8
  chunked_prefill_size: 4096
  cuda_graph_batch_sizes: [1, 8, 16]
  disable_cuda_graph: false
  disable_prefill_cuda_graph: false
  sampling_backend: pytorch
  tensor_parallel_size: 1
  disable_custom_all_reduce: false
  disable_allreduce_fusion: true
  random_seed: 0
  extra_flags: {kv-cache-dtype: auto}
  env: {NCCL_DEBUG: WARN}
arms:
  - kind: baseline
    name: baseline
    server: {attention_backend: triton}
  - kind: eagle3
    name: k3
    baseline: baseline
    num_steps: 3
    topk: 1
    server: {page_size: 16}
  - kind: eagle3
    name: tree
    num_steps: 2
    topk: 4
    num_draft_tokens: 16
    server: {mem_fraction_static: 0.75}
  - kind: adaptive
    name: adaptive
    baseline: baseline
    num_steps: 7
    candidates: {"1": [1, 3, 7], "8": [0, 1]}
    server: {extra_flags: {watchdog-timeout: 600}}
workload:
  files: [workloads/prompts.jsonl]
  classes: [chat, code]
  prompts: 96
  seed: 0
  min_output_tokens: 128
  max_output_tokens: 256
  ignore_eos: true
  temperature: 0.0
load:
  concurrency: [1, 8]
  waves: 4
  min_requests: 8
  warmup_requests: 4
  failure_limit: 0.01
  request_timeout_s: 600.0
design:
  blocks: 3
  seed: 0
  aa_speed: true
  closing_baseline: true
gate:
  concurrency: [1, 8]
  delta_1: 0.02
  delta_2: 0.02
  legacy_tolerance: 0.05
  functional_limit: 0.02
  alpha: 0.05
  bootstrap_draws: 2000
  seed: 0
losslessness:
  tau_floor: 0.01
decision:
  metric: output_throughput_window
  noise_threshold: 0.02
  confidence_level: 0.95
  candidate: k3
  max_slowdown: 0.05
budget:
  minutes: 240.0
notes: Nothing was given up.
"""


def changed(old: str, new: str) -> str:
    """The example with its only occurrence of `old` replaced."""
    if GOOD.count(old) != 1:
        raise ValueError(f"{old!r} stands {GOOD.count(old)} times in the example")
    return GOOD.replace(old, new)
