from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.contract import load
from kit.diagnosis import Cause, diagnose, diagnose_requests
from kit.diagnosis.causes import REMEDIES
from kit.diagnosis.log import Origin, failures, read

DATA = Path(__file__).parent / "data"
LOGS = DATA / "logs"
CAPTURED = sorted((DATA / "captures").glob("*/server_*.log.xz"))
RECORDED = sorted((DATA / "recorded").glob("*.jsonl.xz"))


def log(name: str) -> str:
    return (LOGS / f"{name}.log").read_text(encoding="utf-8")


# One log for each cause: SGLang's own messages, as 0.5.15 to 0.5.23 word them, around the line that matters.
WRITTEN = [
    ("port_taken_at_bind", 1, Cause.PORT_IN_USE, "30000"),
    ("port_taken_before_start", 1, Cause.PORT_IN_USE, "31234"),
    ("draft_context", -9, Cause.DRAFT_CONTEXT_LENGTH, "8192 tokens asked for, the draft allows 2048"),
    ("user_context", 1, Cause.CONTEXT_LENGTH, "262144 tokens asked for, the model allows 131072"),
    ("oom_weights", -9, Cause.GPU_MEMORY_WEIGHTS, "896.00 MiB"),
    ("oom_pool_too_small", -9, Cause.GPU_MEMORY_SHARE, "0.32"),
    ("oom_draft_pool", -9, Cause.GPU_MEMORY_KV_POOL, "1.15 GiB"),
    ("oom_graphs", -9, Cause.GPU_MEMORY_GRAPHS, "258.00 MiB"),
    ("oom_serving", -9, Cause.GPU_MEMORY_SERVING, "2.00 GiB"),
    ("missing_module", -9, Cause.MISSING_MODULE, "flashinfer"),
    ("architecture", -9, Cause.UNSUPPORTED_ARCHITECTURE, "LlamaForCausalLMEagle4"),
    ("nccl_hang", -9, Cause.NCCL_HANG, "ALLREDUCE for 600004 ms"),
    ("watchdog", -9, Cause.WATCHDOG, "300 s"),
    ("adaptive_buffer_two_ranks", -9, Cause.ADAPTIVE_BUFFER, "96 rows, 256 needed"),
    ("adaptive_flat_config", 1, Cause.ADAPTIVE_CONFIG, ""),
    ("adaptive_ladder", 1, Cause.ADAPTIVE_LADDER, "start 5, candidates [0, 1, 3, 7]"),
    ("adaptive_switched_off", None, Cause.ADAPTIVE_OFF, "speculative_eagle_topk=4"),
    ("model_gated", 1, Cause.MODEL_GATED, ""),
    ("model_offline", 1, Cause.MODEL_OFFLINE, ""),
    ("tokenizer_mismatch", -9, Cause.TOKENIZER_MISMATCH, "target 128256 tokens, draft 49152"),
    ("unknown_flag", 2, Cause.UNKNOWN_FLAG, "--speculative-num-step 3"),
    ("invalid_choice", 2, Cause.BAD_FLAG_VALUE, "tritn"),
    ("plugin_failed", None, Cause.PLUGIN_FAILED, "example_trace"),
    ("plugin_refused_to_start", -9, Cause.PLUGIN_FAILED, "not a function that was reviewed"),
    ("shape_mismatch_replay", -9, Cause.SHAPE_MISMATCH, "160 against 2"),
    ("illegal_access_then_nccl", -9, Cause.ILLEGAL_MEMORY_ACCESS, ""),
    ("vocabulary_small_lookup", -9, Cause.VOCABULARY, "a token id outside the vocabulary"),
    ("vocabulary_large_lookup", -9, Cause.VOCABULARY, "a token id outside the vocabulary"),
    ("device_assert", -9, Cause.DEVICE_ASSERT, "refused its input"),
    ("child_killed_while_serving", -9, Cause.KILLED, "Subprocess scheduler_0"),
    ("child_killed_at_start", 1, Cause.KILLED, "Rank 0 scheduler"),
    ("segfault", -9, Cause.NATIVE_CRASH, "Segmentation fault"),
    ("no_sglang", 1, Cause.NO_SGLANG, "no SGLang"),
    ("no_sglang_module", 1, Cause.NO_SGLANG, "no SGLang"),
    ("oom_killer_host", -9, Cause.HOST_MEMORY, "OOM killer"),
    ("oom_killer_container", 137, Cause.HOST_MEMORY, "OOM killer"),
    ("lost_peer_then_oom", -9, Cause.GPU_MEMORY, "2.00 GiB"),
    ("native_library", -9, Cause.NATIVE_LIBRARY, "libcudart.so.12"),
    ("other_abi", -9, Cause.NATIVE_LIBRARY, "_ZN3c104cuda9SetDeviceEi"),
    ("old_driver", -9, Cause.TOO_OLD_DRIVER, "driver"),
    ("disk_full", -9, Cause.DISK_FULL, "no space"),
    ("pool_full_while_decoding", -9, Cause.KV_POOL_FULL, "KV pool"),
    ("cublas_alloc", -9, Cause.GPU_MEMORY, "GPU out of memory"),
    ("draft_vocabulary", -9, Cause.TOKENIZER_MISMATCH, "target 128256 tokens, draft 32000"),
    ("grpc_port", 1, Cause.BAD_FLAG_VALUE, "SGLANG_GRPC_PORT (66143)"),
    ("older_keyword", None, Cause.REQUEST_FAILED, "seed is no sampling parameter"),
    ("unheard_of", -9, Cause.UNKNOWN, "KeyError: 4711"),
    ("only_the_end", -9, Cause.UNKNOWN, "the child's error is not in this log"),
    ("requests_refused", None, Cause.REQUEST_FAILED, "seed is no sampling parameter"),
    ("stopped_while_serving", -9, Cause.NONE, ""),
    ("field/draft_context", 0, Cause.DRAFT_CONTEXT_LENGTH, "8192 tokens asked for, the draft allows 2048"),
    ("field/launch_a", -9, Cause.GPU_MEMORY_KV_POOL, "1.15 GiB"),
    ("field/launch_b", -9, Cause.ADAPTIVE_BUFFER, "128 rows, 256 needed"),
    ("field/launch_c", 1, Cause.ADAPTIVE_LADDER, "start 5, candidates [1, 3, 7]"),
    ("field/launch_d", 1, Cause.ADAPTIVE_CONFIG, ""),
    ("field/illegal_access", 0, Cause.ILLEGAL_MEMORY_ACCESS, ""),
    ("field/hang", None, Cause.WATCHDOG, "300 s"),
    ("field/port_taken", 1, Cause.PORT_IN_USE, "30000"),
    ("field/adaptive_off", None, Cause.ADAPTIVE_OFF, "speculative_eagle_topk=4"),
    ("field/healthy_eager", None, Cause.NONE, ""),
    ("field/healthy_retracting", None, Cause.NONE, ""),
    ("field/healthy_adaptive", None, Cause.NONE, ""),
]


@pytest.mark.parametrize(("name", "exit_code", "cause", "in_title"), WRITTEN)
def test_the_root_cause_is_named_with_its_values_and_its_line(
    name: str, exit_code: int | None, cause: Cause, in_title: str
) -> None:
    text = log(name)
    found = diagnose(text, exit_code=exit_code)
    assert found.cause is cause
    assert in_title in found.title
    assert found.advice
    if cause is not Cause.NONE:
        assert found.line is not None
        assert found.evidence in text.split("\n")[found.line - 1]


def test_every_log_written_for_a_cause_is_in_the_table() -> None:
    written = {name for name, *_ in WRITTEN if "/" not in name}
    assert {path.stem for path in LOGS.glob("*.log")} == written | {"foreign_text"}


def test_a_log_that_says_nothing_known_is_shown_at_its_end() -> None:
    found = diagnose(log("foreign_text"), exit_code=1)
    assert (found.cause, found.excerpt[-1]) == (Cause.UNKNOWN, "and then it stopped")


@pytest.mark.parametrize("path", CAPTURED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_log_of_a_server_that_served_and_was_stopped_shows_no_failure(path: Path) -> None:
    found = diagnose(lzma.decompress(path.read_bytes()).decode(), exit_code=-9)
    assert found.cause is Cause.NONE
    assert found.title == "no failure found"


def test_captured_logs_are_there_to_be_tested() -> None:
    assert len(CAPTURED) == 7
    assert len(RECORDED) == 5


def recorded(status: int | None) -> list[Any]:
    """Calls that a real server answered with `status` (None: it died), as test parameters."""
    return [
        pytest.param(call, id=f"{path.name.partition('.')[0]}-{call['name']}")
        for path in RECORDED
        for call in map(json.loads, lzma.decompress(path.read_bytes()).splitlines())
        if call["response"]["status"] == status
    ]


@pytest.mark.parametrize("call", recorded(500))
def test_a_recorded_500_is_a_failed_request_of_a_living_server(call: dict[str, Any]) -> None:
    text = "\n".join(call["server_log"])
    assert diagnose(text).cause is Cause.REQUEST_FAILED
    (failure,) = failures(read(text))
    assert failure.origin is Origin.REQUEST
    assert failure.time is not None
    if failure.exception:
        assert failure.exception.startswith("TypeError: ")
        assert failure.exception in text.split("\n")[failure.line - 1]


@pytest.mark.parametrize("call", recorded(None))
def test_a_recorded_death_gives_the_first_error_block(call: dict[str, Any]) -> None:
    found = diagnose("\n".join(call["server_log"]), exit_code=137)
    assert found.cause is Cause.UNKNOWN
    assert found.excerpt[0].startswith("Scheduler hit an exception")
    assert "unknown failure" in found.title


def test_the_recorded_seed_is_named_with_the_right_parameter() -> None:
    case = json.loads((LOGS / "field" / "requests.jsonl").read_text().split("\n")[0])
    found = diagnose(case["server_log"], names=load("0.5.15.post1"))
    assert found.cause is Cause.REQUEST_FAILED
    assert found.advice.startswith("SGLang calls seed sampling_seed; ")


def test_an_unknown_flag_gets_the_nearest_one() -> None:
    found = diagnose(log("unknown_flag"), exit_code=2, names=load("0.5.15.post1"))
    assert found.advice.startswith("did you mean --speculative-num-steps? ")


@pytest.mark.parametrize(
    ("exit_code", "oom_killed", "cause", "in_title"),
    [
        (None, None, Cause.NONE, "no failure found"),
        (0, False, Cause.NONE, "no failure found"),
        (-9, None, Cause.KILLED, "SIGKILL"),
        (137, False, Cause.KILLED, "the container engine reports no OOM kill"),
        (137, True, Cause.HOST_MEMORY, "the container engine reports an OOM kill"),
        (-11, None, Cause.NATIVE_CRASH, "SIGSEGV"),
        (134, None, Cause.NATIVE_CRASH, "SIGABRT"),
        (-15, None, Cause.STOPPED, "SIGTERM"),
        (130, None, Cause.STOPPED, "SIGINT"),
        (3, None, Cause.UNKNOWN, "exit status 3"),
    ],
)
def test_without_an_error_in_the_log_only_what_is_known_is_said(
    exit_code: int | None, oom_killed: bool | None, cause: Cause, in_title: str
) -> None:
    found = diagnose(log("field/healthy_eager"), exit_code=exit_code, oom_killed=oom_killed)
    assert found.cause is cause
    assert in_title in found.title
    assert found.line is None


@pytest.mark.parametrize("name", [name for name, status, cause, _ in WRITTEN if cause is Cause.KILLED])
def test_a_kill_is_never_called_a_lack_of_memory_unless_the_engine_says_so(name: str) -> None:
    found = diagnose(log(name), exit_code=-9)
    assert "memory" not in found.title
    assert diagnose(log(name), exit_code=-9, oom_killed=True).cause is Cause.HOST_MEMORY


def test_a_kill_that_sglang_gave_itself_is_told_from_the_kernels() -> None:
    found = diagnose(log("draft_context"), exit_code=137)
    assert found.cause is Cause.DRAFT_CONTEXT_LENGTH
    assert found.contributing == ("exit status 137 is SGLang killing its own process tree, not the kernel or a person",)


def test_an_exit_status_of_zero_after_a_crash_is_no_success() -> None:
    found = diagnose(log("field/illegal_access"), exit_code=0)
    assert found.time == "2026-01-05 10:00:26"
    assert found.excerpt[0] == "Scheduler exception in forward_batch_generation (eagle worker, verify)"
    assert "exit status 0 is no sign of success" in found.contributing[0]


def test_a_known_error_stands_although_the_engine_also_reports_an_oom_kill() -> None:
    found = diagnose(log("shape_mismatch_replay"), exit_code=137, oom_killed=True)
    assert found.cause is Cause.SHAPE_MISMATCH
    assert "the container engine also reports an OOM kill" in found.contributing


@pytest.mark.parametrize(("word", "cause"), [("true", Cause.HOST_MEMORY), ("false", Cause.KILLED)])
def test_what_the_engine_said_is_read_from_the_end_of_a_containers_log(word: str, cause: Cause) -> None:
    end = f"[speckit] the container ended with exit code 137, OOMKilled {word}\n"
    assert diagnose(log("field/healthy_eager") + end, exit_code=137).cause is cause


def test_an_unknown_error_gives_way_to_a_reported_oom_kill() -> None:
    assert diagnose(log("unheard_of"), exit_code=137, oom_killed=True).cause is Cause.HOST_MEMORY


def test_a_failed_plugin_is_told_beside_the_crash_that_came_later() -> None:
    found = diagnose(log("plugin_failed") + log("shape_mismatch_replay"), exit_code=-9)
    assert found.cause is Cause.SHAPE_MISMATCH
    assert found.contributing[0] == "an SGLang plugin failed (line 7): Failed to execute general plugin: example_trace"


def test_a_hang_tells_when_the_last_batch_was_logged() -> None:
    assert diagnose(log("field/hang")).contributing == ("last batch logged at 2026-01-05 10:00:23 (line 6)",)


def test_what_was_logged_before_the_server_came_up_did_not_end_it() -> None:
    assert diagnose("ImportError: optional backend\n" + log("field/healthy_eager")).cause is Cause.MISSING_MODULE
    ready = "[2026-01-05 10:00:01] The server is fired up and ready to roll!\n"
    assert diagnose("ImportError: optional backend\n" + ready).cause is Cause.NONE


def test_a_handled_exception_counts_only_when_the_server_died_without_another() -> None:
    text = "[2026-01-05 10:00:01] Failed to load the cache\nTraceback (most recent call last):\n  File x\nKeyError: 1\n"
    assert diagnose(text).cause is Cause.NONE
    assert diagnose(text, exit_code=1).evidence == "KeyError: 1"


REFUSED = [
    ("2026-03-02 09:00:52", "TypeError: Unexpected keyword argument 'seed'", 33),
    ("2026-03-02 09:00:53", "TypeError: Unexpected keyword argument 'seed'", 43),
    ("2026-03-02 09:00:55", "TypeError: '<=' not supported between instances of 'int' and 'str'", 53),
]


@pytest.mark.parametrize(("after", "upto", "expected"), [(0, 99, REFUSED), (35, 99, REFUSED[1:]), (0, 45, REFUSED[:2])])
def test_failed_requests_of_a_living_server_are_told_between_two_lines(
    after: int, upto: int, expected: list[tuple[str, str, int]]
) -> None:
    told = diagnose_requests(log("requests_refused"), after=after, upto=upto)
    assert [(one.time, one.evidence, one.line) for one in told] == expected
    assert {one.cause for one in told} == {Cause.REQUEST_FAILED}


def test_a_linked_traceback_is_one_failure_with_its_chain() -> None:
    (failure,) = failures(read(log("model_gated")))
    assert [raised.type for raised in failure.chain] == [
        "requests.exceptions.HTTPError",
        "huggingface_hub.errors.GatedRepoError",
        "OSError",
    ]
    assert "Cannot access gated repo" in failure.chain[1].message


def test_colours_container_stamps_and_carriage_returns_do_not_hide_an_error() -> None:
    stamp = "2026-03-02T09:00:00.123456789Z "
    dressed = "\r\n".join(f"{stamp}\x1b[31m{line}\x1b[0m" for line in log("draft_context").split("\n"))
    found = diagnose(dressed, exit_code=-9)
    assert (found.cause, found.time) == (Cause.DRAFT_CONTEXT_LENGTH, "2026-03-02 09:00:18")


def test_every_cause_has_a_heading_and_advice() -> None:
    assert REMEDIES.keys() == set(Cause)
    assert all(remedy.heading and remedy.advice for remedy in REMEDIES.values())


PIECES = sorted({line for path in LOGS.glob("*.log") for line in path.read_text(encoding="utf-8").split("\n")})


@given(
    st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("\n".join),
    st.none() | st.integers(-70, 300),
    st.none() | st.booleans(),
)
def test_any_text_and_any_exit_status_is_diagnosed(text: str, exit_code: int | None, oom_killed: bool | None) -> None:
    found = diagnose(text, exit_code=exit_code, oom_killed=oom_killed)
    assert found.title
    assert found.line is None or 1 <= found.line <= text.count("\n") + 1


@pytest.mark.parametrize(
    "unit",
    [
        "Traceback (most recent call last):\n",
        "Traceback (most recent call last):\n  File x\nE\n\nDuring handling of the above exception, another\n\n",
        "ValueError: " + "context_length (1 derived context_length (" * 50 + "\n",
        "1" * 5000 + "\n",
        "a." * 2000 + "Error: x\n",
    ],
)
def test_hostile_repetition_is_read_in_one_pass(unit: str) -> None:
    # Quadratic work on these two megabytes would take hours, one pass takes a second.
    text = unit * (2_000_000 // len(unit))
    assert diagnose(text, exit_code=-9).cause in Cause
