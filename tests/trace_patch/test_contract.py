"""The plugin under SGLang's own loader, hooks and scheduler code, for every reviewed version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from speckit_trace import plugin, targets

import kit.contract
from kit.contract.source import Sources
from kit.importers.recording import Recording
from kit.importers.segments import RowFlag
from kit.importers.trace import read_recording
from tests.trace_patch import PLUGIN

SCRIPT = Path(__file__).with_name("real")
VERSIONS = tuple(targets.known_digests())
TOKENS = [5, 9, 3, 8, 200, 41]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_known_digests_are_those_of_the_committed_contract(version: str) -> None:
    contract = Path(kit.contract.__file__).with_name(f"sglang-{version}.json")
    hooks = json.loads(contract.read_text(encoding="utf-8"))["hooks"]
    known = targets.known_digests()[version]
    shared = hooks.keys() & known.keys()
    assert {f"{targets.SCHEDULER}.run_batch", f"{targets.SCHEDULER}.on_idle"} <= shared
    assert {path: hooks[path]["sha256"] for path in shared} == {path: known[path] for path in shared}


@dataclass(frozen=True)
class Environment:
    """A virtual environment with one SGLang wheel and the plugin, nothing else."""

    version: str
    folder: Path

    @property
    def packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def run(self, directory: Path, scenario: dict[str, Any], **variables: str) -> subprocess.CompletedProcess[str]:
        arguments = [str(self.folder / "bin" / "python"), str(SCRIPT), str(directory), json.dumps(scenario)]
        return subprocess.run(arguments, capture_output=True, text=True, check=False, env={**os.environ, **variables})


@pytest.fixture(scope="module", params=VERSIONS)
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("sglang")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    subprocess.run([*pip, f"sglang=={request.param}", str(PLUGIN)], check=True)
    return Environment(request.param, folder)


def scenario(*, overlap: bool = True, depth: int | None = 3, draft_tokens: int | None = None) -> dict[str, Any]:
    """Chains have one draft token more than they are deep; trees are given another number."""
    return {"overlap": overlap, "depth": depth, "draft_tokens": draft_tokens, "adaptive": False, "tokens": TOKENS}


SCENARIOS = {
    "no speculation": scenario(depth=None),
    "no speculation, no overlap": scenario(depth=None, overlap=False),
    "chain": scenario(),
    "chain, no overlap": scenario(overlap=False),
    "tree": scenario(depth=2, draft_tokens=16),
    "adaptive": {**scenario(depth=7), "adaptive": True},
    "adaptive, no overlap": {**scenario(depth=7, overlap=False), "adaptive": True},
}


@pytest.mark.contract
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_trace_agrees_with_sglangs_own_account(environment: Environment, tmp_path: Path, name: str) -> None:
    ended = environment.run(tmp_path / "trace", SCENARIOS[name])
    assert ended.returncode == 0, ended.stderr
    account = json.loads(ended.stdout)
    recording = read_recording(tmp_path / "trace")
    assert account["sglang"] == recording.header.sglang == recording.header.reviewed_as == environment.version
    assert account["status"]["records"] == account["forward_ct"]
    assert (account["status"]["enabled"], account["status"]["dropped"]) == (True, 0)
    assert (recording.lost, recording.faults) == (0, ())
    _check_launches(recording, account["launched"], SCENARIOS[name])
    _check_requests(recording, account["requests"], overlap=SCENARIOS[name]["overlap"])
    _check_switches(recording)


def _check_launches(recording: Recording, launched: list[list[Any]], wanted: dict[str, Any]) -> None:
    """Numbers, modes, depths and requests are those the worker was given at launch."""
    steps, rows = recording.steps, recording.rows
    assert steps.number.tolist() == [number for number, *_ in launched]
    assert [recording.header.modes[int(mode)] for mode in steps.mode] == [mode for _, mode, *_ in launched]
    depths = [-1 if depth is None else depth for _, _, depth, _ in launched]
    assert steps.depth.tolist() == depths
    widths = [-1 if depth < 0 else wanted["draft_tokens"] or depth + 1 for depth in depths]
    assert steps.draft_tokens.tolist() == widths
    assert [recording.rids[rid] for rid in rows.rid] == [rid for *_, rids in launched for rid in rids]


def _check_requests(recording: Recording, requests: dict[str, list[int]], *, overlap: bool) -> None:
    """Live rounds account for SGLang's counts of verify rounds, accepted drafts and tokens."""
    trace = recording.trace(launch=0)
    rounds = trace.rounds
    assert rounds.ghost.any() == overlap
    for code, rid in enumerate(trace.rids):
        tokens, verify_rounds, correct = requests[rid]
        live = (rounds.rid == code) & ~rounds.ghost
        accepted = rounds.accepted[live]
        emitted = 1 + np.maximum(accepted, 0)
        assert rounds.tokens_before[live].tolist() == (1 + np.cumsum(emitted) - emitted).tolist()
        assert 1 + emitted.sum() == tokens
        if (accepted >= 0).any():
            assert (len(accepted), accepted.sum()) == (verify_rounds, correct)
    assert not recording.rows.having(RowFlag.RETRACTED).any()


def _check_switches(recording: Recording) -> None:
    """Every change of depth from one round to the next has its switch, and switches follow each other."""
    depths = recording.steps.depth[recording.steps.depth >= 0]
    switches = recording.trace(launch=0).switches
    assert len(switches.number) >= np.count_nonzero(np.diff(depths))
    assert switches.before[1:].tolist() == switches.after[:-1].tolist()
    assert (switches.slot >= 1).all()
    assert np.isfinite(switches.average).all()


@pytest.mark.contract
def test_the_known_digests_are_those_of_the_installed_files(environment: Environment) -> None:
    sources = Sources(environment.packages)
    for path, digest in targets.known_digests()[environment.version].items():
        module, class_name, name = path.rsplit(".", 2)
        function = sources.module(f"{module.removeprefix('sglang.').replace('.', '/')}.py").function(
            f"{class_name}.{name}"
        )
        assert function is not None
        assert function.sha256 == digest


@pytest.mark.contract
def test_one_changed_line_of_sglang_ends_the_process_before_it_is_ready(
    environment: Environment, tmp_path: Path
) -> None:
    file = environment.packages / "sglang" / "srt" / "managers" / "scheduler.py"
    original = file.read_text(encoding="utf-8")
    file.write_text(original.replace('"""Run a batch."""', '"""Run one batch."""'), encoding="utf-8")
    try:
        refused = environment.run(tmp_path / "refused", scenario())
        allowed = environment.run(tmp_path / "allowed", scenario(), **{plugin.ALLOW_UNKNOWN: "1"})
    finally:
        file.write_text(original, encoding="utf-8")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"speckit_trace: {targets.SCHEDULER}.run_batch has source text that was not reviewed" in refused.stderr
    assert allowed.returncode == 0, allowed.stderr
    assert read_recording(tmp_path / "allowed").header.override


@pytest.mark.contract
def test_a_misspelt_plugin_list_is_seen_only_from_outside(environment: Environment, tmp_path: Path) -> None:
    ended = environment.run(tmp_path / "trace", scenario(), SGLANG_PLUGINS="speckit-trace")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["status"] is None
    assert not (tmp_path / "trace").exists()
