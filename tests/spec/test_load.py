from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kit.errors import SpecError
from kit.spec import AdaptiveArm, BaselineArm, Eagle3Arm, load_spec, parse_spec
from tests.spec.example import GOOD, changed


def refusal(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parse_spec(text, name="specs/x.yaml")
    return str(caught.value)


def test_the_example_loads_with_every_kind_of_arm() -> None:
    spec = parse_spec(GOOD, name="specs/x.yaml")
    assert [type(arm) for arm in spec.arms] == [BaselineArm, Eagle3Arm, Eagle3Arm, AdaptiveArm]
    assert spec.server.extra_flags == {"kv-cache-dtype": "auto"}
    assert spec.workload.temperature == 0


def test_a_chain_verifies_one_token_more_than_it_drafts() -> None:
    chain = parse_spec(GOOD, name="specs/x.yaml").arm("k3")
    assert isinstance(chain, Eagle3Arm)
    assert chain.draft_tokens == 4


def test_an_arm_without_a_named_baseline_is_compared_with_the_first() -> None:
    spec = parse_spec(GOOD, name="specs/x.yaml")
    references = [spec.reference(arm) for arm in spec.arms]
    assert references[0] is None
    assert {arm.name for arm in references[1:] if arm} == {"baseline"}


# What is wrong -> the text, what stands first on the line to be named, and what the message says after it.
BAD = {
    "unknown key": (
        changed("    topk: 4\n", "    top_k: 4\n"),
        "top_k: 4",
        "arms.2.top_k: unknown field; did you mean `topk`?; 1 more after this",
    ),
    "unknown key that resembles none": (
        changed("notes: Nothing", "zzz: Nothing"),
        "zzz:",
        "zzz: unknown field; docs/spec.md lists the fields there are",
    ),
    "wrong type": (
        changed("prompts: 96", "prompts: many"),
        "prompts: many",
        'workload.prompts: should be a valid integer (value "many")',
    ),
    "number as text": (
        changed("prompts: 96", 'prompts: "96"'),
        'prompts: "96"',
        'workload.prompts: should be a valid integer (value "96")',
    ),
    "text as number": (
        changed('min_driver: "580"', "min_driver: 580"),
        "min_driver",
        "host.min_driver: should be a valid string (value 580)",
    ),
    "list where a number belongs": (
        changed("prompts: 96", "prompts: [96]"),
        "prompts: [96]",
        "workload.prompts: should be a valid integer (a list)",
    ),
    "list as the value of a flag": (
        changed("{kv-cache-dtype: auto}", "{kv-cache-dtype: [auto]}"),
        "kv-cache",
        "server.extra_flags.kv-cache-dtype: should be a valid string (a list)",
    ),
    "missing field": (changed("title: An example\n", ""), "schema_version", "title: missing; add it"),
    "several problems": (
        changed("    topk: 1\n", "").replace("waves: 4", "waves: 0"),
        "- kind: eagle3",
        "arms.1.topk: missing; add it; 1 more after this",
    ),
    "K without topk": (changed("    topk: 1\n", ""), "- kind: eagle3", "arms.1.topk: missing; add it"),
    "draft tokens that a chain cannot have": (
        changed("topk: 1\n", "topk: 1\n    num_draft_tokens: 16\n"),
        "- kind: eagle3",
        "arms.1: num_draft_tokens 16 cannot be had at topk 1: SGLang uses num_steps + 1 = 4; leave it out",
    ),
    "tree without its size": (
        changed("    num_draft_tokens: 16\n", ""),
        "- kind: eagle3\n    name: tree",
        "arms.2: topk 4 over 2 steps is a tree of up to 21 tokens: state num_draft_tokens, from 2 to 21",
    ),
    "tree larger than its branches": (
        changed("num_draft_tokens: 16", "num_draft_tokens: 22"),
        "- kind: eagle3\n    name: tree",
        "arms.2: topk 4 over 2 steps is a tree of up to 21 tokens: state num_draft_tokens, from 2 to 21",
    ),
    "tree without steps": (
        changed("num_steps: 2", "num_steps: 0"),
        "- kind: eagle3\n    name: tree",
        "arms.2: topk 4 has no tree at num_steps 0: use topk 1 there",
    ),
    "unknown kind of arm": (
        changed("  - kind: adaptive", "  - kind: medusa"),
        "kind: medusa",
        'arms.3.kind: no such kind of arm (value "medusa"); use baseline, eagle3 or adaptive',
    ),
    "arm without a kind": (
        changed("  - kind: adaptive\n    name: adaptive", "  - name: adaptive"),
        "- name: adaptive",
        "arms.3.kind: missing; say which kind of arm it is: baseline, eagle3 or adaptive",
    ),
    "duplicate arms": (
        changed("name: tree", "name: k3"),
        "name: k3\n    num_steps: 2",
        "arms.2.name: `k3` names 2 arms: give each its own name",
    ),
    "no baseline": (
        changed("  - kind: baseline\n    name: baseline\n    server: {attention_backend: triton}\n", "").replace(
            "    baseline: baseline\n", ""
        ),
        "arms:",
        "arms: no arm is a baseline, so nothing can be compared: add one with `kind: baseline`",
    ),
    "unknown baseline": (
        changed("name: k3\n    baseline: baseline", "name: k3\n    baseline: plain"),
        "baseline: plain",
        "arms.1.baseline: `plain` is no baseline arm; there are ['baseline']",
    ),
    "missing draft": (
        GOOD[: GOOD.index("  draft:")] + GOOD[GOOD.index("engine:") :],
        "models:",
        "models: arm `k3` speculates but models.draft is missing: name the EAGLE3 draft",
    ),
    "context beyond the draft's": (
        changed("context_length: 4096", "context_length: 1024"),
        "context_length: 2048",
        "server.context_length: 2048 exceeds the draft's 1024 positions, and SGLang would refuse to start: "
        "use 1024 or less on every arm",
    ),
    "adaptive launch depth below the ladder": (
        changed("num_steps: 7", "num_steps: 3"),
        "num_steps: 3\n    candidates",
        "arms.3.num_steps: 3 is not the largest candidate 7: SGLang 0.5.15 dies at start-up unless it is",
    ),
    "slot that is no batch size": (
        changed('"8": [0, 1]', '"many": [0, 1]'),
        "many",
        "arms.3.candidates.many: not a batch size: use an integer in quotes",
    ),
    "slot that is not quoted": (
        changed('"8": [0, 1]', "8: [0, 1]"),
        "8: [0, 1]",
        'arms.3.candidates: the key "8" is not text; put it in quotes',
    ),
    "slot without candidates": (
        changed('"8": [0, 1]', '"8": []'),
        "candidates",
        "arms.3.candidates: no slot, or a slot without K: give every batch size at least one K",
    ),
    "concurrency 0": (
        changed("concurrency: [1, 8]\n  waves", "concurrency: [0, 8]\n  waves"),
        "[0, 8]",
        "load.concurrency.0: should be greater than 0 (value 0)",
    ),
    "concurrency twice": (
        changed("concurrency: [1, 8]\n  waves", "concurrency: [8, 8]\n  waves"),
        "load:\n  concurrency",
        "load: concurrency lists a level twice: [8, 8]",
    ),
    "gate level that is not measured": (
        changed("gate:\n  concurrency: [1, 8]", "gate:\n  concurrency: [1, 4]"),
        "[1, 4]",
        "gate.concurrency: 4 is not measured: load.concurrency is [1, 8]",
    ),
    "too few prompts": (
        changed("prompts: 96", "prompts: 95"),
        "prompts: 95",
        "workload.prompts: 95 prompts over 3 blocks give 31 each, but the largest cell sends 32 and must not "
        "repeat one: use at least 96",
    ),
    "outputs that fill the context": (
        changed("max_output_tokens: 256", "max_output_tokens: 2048"),
        "max_output",
        "workload.max_output_tokens: 2048 tokens and a prompt do not fit server.context_length 2048: SGLang would "
        "refuse the request",
    ),
    "output lengths in the wrong order": (
        changed("min_output_tokens: 128", "min_output_tokens: 512"),
        "workload:",
        "workload: min_output_tokens 512 exceeds max_output_tokens 256",
    ),
    "fewer slots than requests": (
        changed("max_running_requests: 32", "max_running_requests: 4"),
        "max_running",
        "server.max_running_requests: 4 is below concurrency 8: requests would queue; use 8 or more",
    ),
    "level without a CUDA graph": (
        changed("[1, 8, 16]", "[1, 4]"),
        "[1, 4]",
        "server.cuda_graph_batch_sizes: [1, 4] ends below concurrency 8, which would decode without a graph: add 8",
    ),
    "pages that a tree cannot use": (
        changed("page_size: 1\n", "page_size: 16\n").replace("backend: triton", "backend: torch_native"),
        "topk: 4",
        "arms.2.topk: 4 with pages above 1 does not run on torch_native",
    ),
    "flag with dashes": (
        changed("{kv-cache-dtype: auto}", "{--kv_cache_dtype: auto}"),
        "--kv",
        'server.extra_flags.--kv_cache_dtype: not the name of a flag: write "kv-cache-dtype"',
    ),
    "flag that a field sets": (
        changed("{watchdog-timeout: 600}", "{page-size: 64}"),
        "page-size",
        "arms.3.server.extra_flags.page-size: already follows from other fields or is set on every arm: leave it out",
    ),
    "flag that changes requests": (
        changed("{kv-cache-dtype: auto}", "{preferred-sampling-params: '{}'}"),
        "preferred",
        "server.extra_flags.preferred-sampling-params: changes what requests ask for; the spec's workload does: "
        "leave it out",
    ),
    "secret among the flags": (
        changed("{kv-cache-dtype: auto}", "{api-key: abc}"),
        "api-key",
        "server.extra_flags.api-key: looks like a secret, and specs are published: leave it out",
    ),
    "secret in the environment": (
        changed("{NCCL_DEBUG: WARN}", "{HF_TOKEN: abc}"),
        "HF_TOKEN",
        "server.env.HF_TOKEN: looks like a secret, and specs are published: set it in the shell",
    ),
    "simulated acceptance": (
        changed("{NCCL_DEBUG: WARN}", '{SGLANG_SIMULATE_ACC_LEN: "3"}'),
        "SIMULATE",
        "server.env.SGLANG_SIMULATE_ACC_LEN: falsifies what is measured: leave it out",
    ),
    "unknown variant": (
        changed("image: triton", "image: tensorrt"),
        "tensorrt",
        "engine.image: should be 'triton', 'flashinfer' or 'cpu' (value \"tensorrt\")",
    ),
    "runtime without its image": (changed("  image: triton\n", ""), "engine:", "engine: runtime docker needs `image`"),
    "candidate that is a baseline": (
        changed("candidate: k3", "candidate: baseline"),
        "candidate: baseline",
        "decision.candidate: `baseline` is no arm that speculates; there are ['k3', 'tree', 'adaptive']",
    ),
    "name that is no file name": (
        changed("name: example", "name: an/example"),
        "an/example",
        "name: String should match pattern '^[a-z0-9][a-z0-9_]*$' (value \"an/example\")",
    ),
    "duplicate key": (
        changed("title: An example\n", "title: A\ntitle: B\n"),
        "title: B",
        "title: given twice; keep one",
    ),
    "alias": (
        changed("title: An example", "title: &t An example").replace("notes: Nothing was given up.", "notes: *t"),
        "&t",
        "title: the alias or anchor `t` is not allowed in a spec; write the value out",
    ),
    "tag": (
        changed("title: An example", "title: !!python/name:os.system x"),
        "!!python",
        'title: the tag "tag:yaml.org,2002:python/name:os.system" is not allowed in a spec; write a plain value',
    ),
    "merge key": (
        changed("title: An example", "<<: {title: An example}"),
        "<<",
        'spec: the key "<<" is not text; put it in quotes',
    ),
    "date": (
        changed("title: An example", "title: 2026-01-31"),
        "2026-01",
        'title: neither text nor number (value "2026-01-31"); put it in quotes',
    ),
    "not a number": (
        changed("minutes: 240.0", "minutes: .nan"),
        ".nan",
        'budget.minutes: not a plain decimal number (value ".nan"); write it in decimal digits',
    ),
    "number in base sixty": (
        changed("minutes: 240.0", "minutes: 4:00"),
        "4:00",
        'budget.minutes: not a plain decimal number (value "4:00"); write it in decimal digits',
    ),
    "number in base eight": (
        changed("prompts: 96", "prompts: 0140"),
        "0140",
        'workload.prompts: not a plain decimal number (value "0140"); write it in decimal digits',
    ),
    "half a character": (
        changed("title: An example", 'title: "\\ud800"'),
        "ud800",
        'title: half of a surrogate pair (value "\\ud800"); write the character itself',
    ),
    "control character": (
        changed("title: An example", "title: An\x07example"),
        "\x07",
        "the character U+0007 is not allowed in YAML; remove it",
    ),
    "tab": (
        changed("  runtime: docker", "\truntime: docker"),
        "\t",
        "not YAML: found character '\\t' that cannot start any token; indent with spaces",
    ),
    "unclosed list": (
        changed("files: [workloads/prompts.jsonl]", "files: [workloads/prompts.jsonl"),
        "classes:",
        "not YAML: expected ',' or ']', but got ':'; fix the line",
    ),
    "two documents": (
        GOOD + "---\na: 1\n",
        "---",
        "not YAML: but found another document; fix the line",
    ),
    "nested without end": (
        changed("notes: Nothing was given up.", "notes: " + "[" * 500),
        "[[[",
        "nested more than 20 deep, and no field of a spec is; flatten it",
    ),
    "newer schema": (
        changed("schema_version: 1", "schema_version: 2").replace("notes:", "future: field\nnotes:"),
        "schema_version",
        "schema_version: 2 is newer than this kit's 1; update the kit",
    ),
    "schema of no number": (
        changed("schema_version: 1", "schema_version: ²"),
        "schema_version",
        'schema_version: should be 1 (value "\\u00b2")',
    ),
    "list of specs": ("- a\n- b\n", "- a", "a spec is a mapping of fields; start from specs/quickstart.yaml"),
    "empty file": ("", "", "a spec is a mapping of fields; start from specs/quickstart.yaml"),
    "key with a line break": (
        changed("notes: Nothing", '"no\\ntes": Nothing'),
        'tes":',
        '"no\\ntes": unknown field; did you mean `notes`?',
    ),
    "key that is a list": (
        changed("notes: Nothing", "? [notes]\n: Nothing"),
        "? [notes]",
        "spec: the key a list or mapping is not text; put it in quotes",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_spec_is_refused_in_one_line_that_says_where_what_and_what_to_do(case: str) -> None:
    text, culprit, message = BAD[case]
    line = 1 + text.count("\n", 0, text.index(culprit))
    assert refusal(text) == f"specs/x.yaml:{line}: {message}"


def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(changed("title: An example", "title: Caf\xe9").encode("latin-1"))
    with pytest.raises(SpecError, match=r"latin\.yaml:3: the byte 0xE9 is not UTF-8; save the file as UTF-8$"):
        load_spec(path)


def test_a_byte_order_mark_is_no_reason_to_refuse(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_text(GOOD, encoding="utf-8-sig")
    assert load_spec(path).name == "example"


def test_a_file_that_is_too_large_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text(GOOD + "#" * 200_000)
    with pytest.raises(SpecError, match=r"large\.yaml: 20\d,\d{3} bytes is too large for a spec, the limit is 200,000"):
        load_spec(path)


@pytest.mark.parametrize(("name", "reason"), [("absent.yaml", "No such file or directory"), (".", "Is a directory")])
def test_a_path_without_a_spec_is_refused_with_an_example_of_one(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(SpecError, match=rf"cannot be read \({reason}\); name a spec file, for instance specs/quick"):
        load_spec(tmp_path / name)


def one_line_or_a_spec(text: str) -> None:
    """Parsing `text` gives a spec or a SpecError of one line; nothing else may come out."""
    try:
        parse_spec(text, name="x.yaml")
    except SpecError as error:
        assert len(str(error).splitlines()) == 1
        assert str(error).startswith("x.yaml:")


FRAGMENTS = st.sampled_from(
    (
        *(
            " ",
            "\n",
            "\t",
            ":",
            "- ",
            "[",
            "]",
            "{",
            "}",
            "&a ",
            "*a",
            "!!int ",
            "!",
            "|",
            ">",
            "%",
            "#",
            "'",
            '"',
            "? ",
        ),
        *("<<:", "0x", "1:30", ".inf", "null", "~", "yes", "0b_", "2026-13-99", "\\ud800"),
        *("\x85", "\u2028", "\x00", "\ufeff"),
    )
)


@settings(deadline=None)
@given(st.text())
@example("a: 0b_\n")
@example("a: 1" + ":59" * 200 + ".5\n")
@example("a: " + "9" * 5000)
@example("? ? a\n")
def test_arbitrary_text_raises_nothing_but_a_spec_error(text: str) -> None:
    one_line_or_a_spec(text)


@settings(deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 40), st.lists(FRAGMENTS | st.text(max_size=3), max_size=4))
def test_a_damaged_spec_raises_nothing_but_a_spec_error(start: int, length: int, inserted: list[str]) -> None:
    one_line_or_a_spec(GOOD[:start] + "".join(inserted) + GOOD[start + length :])


@settings(deadline=None)
@given(content=st.binary())
def test_arbitrary_bytes_raise_nothing_but_a_spec_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(content)
    with pytest.raises(SpecError):
        load_spec(path)
