"""The plugin installs itself where it may and ends the process where it must."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from speckit_trace import plugin, targets

from kit.importers.trace import read_recording
from tests.trace_patch import PLUGIN
from tests.trace_patch.conftest import TOY, Toy
from tests.trace_patch.worlds import served, status

RUN_BATCH = f"{targets.SCHEDULER}.run_batch"


def refused(monkeypatch: pytest.MonkeyPatch, directory: Path, *, allow_unknown: bool = True) -> str:
    """The message that the process ends with."""
    monkeypatch.setenv(plugin.DIRECTORY, str(directory))
    if allow_unknown:
        monkeypatch.setenv(plugin.ALLOW_UNKNOWN, "1")
    with pytest.raises(SystemExit) as ended:
        plugin.install()
    return str(ended.value)


def test_without_a_directory_nothing_is_hooked(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plugin.DIRECTORY, raising=False)
    plugin.install()
    assert toy.registry.HookRegistry.hooks == {}


def test_a_process_that_has_no_scheduler_is_left_alone(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(sys.modules, "sglang.srt.managers.scheduler")
    monkeypatch.setenv(plugin.DIRECTORY, str(tmp_path / "trace"))
    plugin.install()
    assert toy.registry.HookRegistry.hooks == {}
    assert not (tmp_path / "trace").exists()


def test_a_missing_target_ends_the_process(toy: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(toy.scheduler.Scheduler, "run_batch")
    message = refused(monkeypatch, tmp_path)
    assert f"{RUN_BATCH} is not there" in message
    assert toy.registry.HookRegistry.hooks == {}


def test_a_target_with_other_parameters_ends_the_process(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_batch(self: object, plan: object, pp_proxy_tensors: object = None) -> None: ...

    monkeypatch.setattr(toy.scheduler.Scheduler, "run_batch", run_batch)
    message = refused(monkeypatch, tmp_path)
    assert f"{RUN_BATCH} takes (self, plan, pp_proxy_tensors) and not (self, batch, pp_proxy_tensors, ...)" in message


def test_unknown_source_ends_the_process_and_is_named(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = (*targets.HOOKED, *targets.WITNESSES)
    found = {path: targets.source_digest(targets.resolve(path)) for path in paths}
    monkeypatch.setattr(targets, "known_digests", lambda: {"9.9": {**found, RUN_BATCH: "other"}})
    message = refused(monkeypatch, tmp_path, allow_unknown=False)
    assert message.startswith(
        f"speckit_trace: {RUN_BATCH} has source text that was not reviewed (reviewed: SGLang 9.9)"
    )
    assert plugin.ALLOW_UNKNOWN in message


def test_a_changed_witness_is_as_bad_as_a_changed_target(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = (*targets.HOOKED, *targets.WITNESSES)
    found = {path: targets.source_digest(targets.resolve(path)) for path in paths}
    witness = targets.WITNESSES[0]
    monkeypatch.setattr(targets, "known_digests", lambda: {"9.9": {**found, witness: "other"}})
    assert witness in refused(monkeypatch, tmp_path, allow_unknown=False)


def test_unknown_source_may_be_allowed_and_then_header_and_server_info_say_so(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(plugin.DIRECTORY, str(toy.directory))
    monkeypatch.setenv(plugin.ALLOW_UNKNOWN, "1")
    plugin.install()
    scheduler = toy.scheduler.Scheduler()
    header = served(toy, scheduler, [toy.batch.Req("a")]).header
    assert (header.override, header.reviewed_as) == (True, None)
    assert (status(scheduler)["override"], status(scheduler)["reviewed_as"]) == (True, None)


def test_a_path_that_cannot_be_written_ends_the_process(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("in the way")
    assert f"{plugin.DIRECTORY}={occupied} cannot be written" in refused(monkeypatch, occupied)


def test_a_hook_that_the_registry_did_not_apply_ends_the_process(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_idle = f"{targets.SCHEDULER}.on_idle"
    monkeypatch.setattr(toy.registry.HookRegistry, "broken", {on_idle})
    assert f"{on_idle} was not hooked" in refused(monkeypatch, tmp_path)


def test_a_parameter_that_the_wrapper_would_not_pass_on_ends_the_process(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_batch(self: object, batch: object, pp_proxy_tensors: object = None, more: object = None) -> None: ...

    monkeypatch.setattr(toy.scheduler.Scheduler, "run_batch", run_batch)
    assert f"{RUN_BATCH} takes (self, batch, pp_proxy_tensors, more) and not" in refused(monkeypatch, tmp_path)


def test_a_full_disk_at_the_start_ends_the_process(toy: Toy) -> None:
    script = """
        import resource
        import sglang.srt.managers.scheduler as scheduling
        from speckit_trace.plugin import install
        install()
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        scheduling.Scheduler().get_init_info()
        print("ready")
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={
            **os.environ,
            "PYTHONPATH": f"{PLUGIN}:{TOY}",
            plugin.DIRECTORY: str(toy.directory),
            plugin.ALLOW_UNKNOWN: "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "speckit_trace: cannot start a trace in" in ended.stderr
    assert "ready" not in ended.stdout
    assert list(toy.directory.iterdir()) == []


def test_server_info_shows_what_runs(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler(depth=3)
    scheduler.get_init_info()
    before = status(scheduler)
    assert (before["enabled"], before["records"], before["dropped"]) == (True, 0, 0)
    scheduler.waiting_queue = [traced.batch.Req("a")]
    scheduler.run_event_loop()
    after = status(scheduler)
    assert after["records"] == scheduler.forward_ct
    assert set(after["targets"]) == set(targets.HOOKED)
    assert (after["version"], after["override"], after["stopped"]) == ("1.0.0", False, "ended")


def test_the_proof_holds_the_digest_of_the_plugins_own_files(traced: Toy) -> None:
    digest = hashlib.sha256()
    for path in sorted((PLUGIN / "speckit_trace").iterdir()):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    assert status(traced.scheduler.Scheduler())["sha"] == digest.hexdigest()


def test_only_the_first_rank_writes(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler(tp_rank=1)
    scheduler.get_init_info()
    scheduler.waiting_queue = [traced.batch.Req("a")]
    scheduler.run_event_loop()
    assert list(traced.directory.iterdir()) == []
    assert status(scheduler)["enabled"] is False


def test_every_data_parallel_replica_writes_into_a_folder_of_its_own(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler()
    scheduler.ps.dp_rank = 3
    scheduler.get_init_info()
    scheduler.waiting_queue = [traced.batch.Req("a")]
    scheduler.run_event_loop()
    recording = read_recording(traced.directory / "dp3")
    assert (recording.header.ranks["dp_rank"], recording.lost) == (3, 0)
    assert [path.name for path in traced.directory.iterdir()] == ["dp3"]


def test_ranks_come_from_the_runtime_context_where_the_scheduler_has_none(
    traced: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = traced.scheduler.Scheduler()
    ranks, scheduler.ps = scheduler.ps, None
    context = type(sys)("sglang.srt.runtime_context")
    monkeypatch.setattr(context, "get_parallel", lambda: ranks, raising=False)
    monkeypatch.setitem(sys.modules, context.__name__, context)
    monkeypatch.setattr(sys.modules["sglang.srt"], "runtime_context", context, raising=False)
    assert served(traced, scheduler, [traced.batch.Req("a")]).header.ranks["tp_rank"] == 0


def test_settings_are_resolved_by_sglang_where_it_has_a_method_for_that(traced: Toy) -> None:
    class Struct:
        __slots__ = ()

        def resolved_dict(self) -> dict[str, object]:
            return {"speculative_num_steps": 5, "api_key": "secret", "other": object()}

    scheduler = traced.scheduler.Scheduler()
    scheduler.server_args = Struct()
    header = served(traced, scheduler, [traced.batch.Req("a")]).header
    assert header.server_args == {"speculative_num_steps": 5}
