"""From facts to verdict: flags, the answer, the sections, and what is missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from functools import cache

import pytest

from kit.checks import CellState, Code
from kit.records import LaunchStatus, Origin, RequestRecord, RunFacts
from kit.stats import LosslessWord, SpeedWord, SweepWord
from kit.verdict import Heading, Named, Verdict, judge
from tests.builders import COMMIT, build_run, build_spec, edit_launches, edit_requests, shared_run
from tests.captures import CPU, H200, facts_of


@cache
def verdict() -> Verdict:
    return judge(shared_run())


@cache
def imported(name: str) -> Verdict:
    return judge(facts_of(name))


def headed(facts: RunFacts, **changes: object) -> RunFacts:
    return replace(facts, header=replace(facts.header, **changes))  # type: ignore[arg-type]


def test_a_sound_run_is_judged_without_a_flag() -> None:
    assert verdict().headings == ()
    assert verdict().doubts.doubts == ()
    assert {state.state for state in verdict().doubts.cells} == {CellState.VALID}
    assert verdict().answer == (
        "On this host eagle3_k1 and eagle3_k3 are faster than baseline at low concurrency and lose at high; "
        "outputs are the baseline's, token by token (144 answers compared); all 18 cells are valid."
    )


def test_judging_twice_gives_the_same_verdict() -> None:
    assert judge(shared_run()) == verdict()


def test_every_speed_word_of_an_imported_capture_is_inconclusive() -> None:
    for name in (H200, CPU):
        section = imported(name).speed
        assert {one.word for one in section.comparisons} == {SpeedWord.INCONCLUSIVE}
        assert {arm.word for arm in section.arms} == {SweepWord.INCONCLUSIVE}
        assert imported(name).headings[0] is Heading.IMPORTED
        assert CellState.VALID not in {state.state for state in imported(name).doubts.cells}


def test_the_numbers_of_an_imported_capture_are_shown() -> None:
    ratios = {
        (one.comparison.arm, one.comparison.concurrency): one.comparison.ratio_full_run.point
        for one in imported(H200).speed.comparisons
    }
    assert ratios["eagle3_k7", 8] == pytest.approx(2229 / 3107, rel=0.01)


def test_outputs_in_bfloat16_are_unresolved_and_in_float32_lossless() -> None:
    assert {row.word for row in imported(H200).losslessness.rows} == {LosslessWord.UNRESOLVED}
    assert {row.word for row in imported(CPU).losslessness.rows} == {LosslessWord.LOSSLESS}
    assert all(row.control is not None for row in imported(H200).losslessness.rows)


def test_an_unfair_flag_voids_the_arms_and_not_the_baseline() -> None:
    causes = {state.arm: state.causes for state in imported(H200).doubts.cells}
    assert Code.UNFAIR_FLAG in causes["eagle3_k3"]
    assert Code.UNFAIR_FLAG not in causes["baseline"]


@pytest.mark.parametrize(
    ("origin", "heading"),
    [
        (Origin.SIMULATED, Heading.SIMULATED),
        (Origin.IMPORTED, Heading.IMPORTED),
        (Origin.ATTACHED, Heading.ATTACHED),
    ],
)
def test_where_the_facts_come_from_is_said_first(origin: Origin, heading: Heading) -> None:
    assert judge(headed(shared_run(), origin=origin)).headings == (heading,)


def test_flags_stand_in_their_fixed_order() -> None:
    facts = build_run(build_spec(design={"blocks": 1}, models={"draft": {"path": "draft", "revision": "main"}}))
    found = judge(headed(facts, origin=Origin.ATTACHED, spec_commit=None)).headings
    assert found == (Heading.ATTACHED, Heading.PARTIAL, Heading.NOT_PINNED, Heading.NOT_PRE_REGISTERED)
    assert list(found) == sorted(found, key=list(Heading).index)


@pytest.mark.parametrize("revision", [None, "main", COMMIT[:10]])
def test_only_a_whole_commit_pins_a_model(revision: str | None) -> None:
    models = {"draft": {"path": "draft", "revision": revision}}
    facts = build_run(build_spec(models=models))
    assert judge(facts).headings == (Heading.NOT_PINNED,)
    assert judge(headed(facts, origin=Origin.SIMULATED)).headings == (Heading.SIMULATED,)  # it runs no model


def test_a_model_that_the_kit_holds_by_its_hash_is_pinned() -> None:
    models = {"target": {"path": "kit:target", "dtype": "float32"}, "draft": {"path": "kit:draft"}}
    found = judge(build_run(build_spec(models=models)))
    assert found.headings == ()
    assert Named("draft revision", "by SHA-256, in the kit") in found.what_ran.models


def test_the_command_of_a_launch_tells_the_program_and_not_where_it_lay() -> None:
    facts = edit_launches(shared_run(), lambda one: replace(one, command=("/home/me/bin/python", "-m", "sglang")))
    assert {launch.command for launch in judge(facts).what_ran.launches} == {("python", "-m", "sglang")}


def test_a_server_that_says_it_computes_on_a_cpu_is_shown_as_such() -> None:
    info = {"internal_states": [{"device": "cpu"}]}
    facts = edit_launches(shared_run(), lambda one: replace(one, server_info={**(one.server_info or {}), **info}))
    assert Heading.ON_CPU in judge(facts).headings
    assert Heading.ON_CPU not in judge(headed(facts, origin=Origin.SIMULATED)).headings
    assert judge(facts_of(CPU)).headings[:2] == (Heading.IMPORTED, Heading.ON_CPU)


def without_blocks(facts: RunFacts) -> RunFacts:
    late = {launch.launch for launch in facts.launches if launch.block == 2}
    lost = {cell.cell for cell in facts.cells if cell.launch in late}
    return replace(facts, repetitions=tuple(rep for rep in facts.repetitions if rep.cell not in lost))


def interrupted(facts: RunFacts) -> RunFacts:
    return edit_launches(facts, lambda one: replace(one, status=LaunchStatus.INTERRUPTED), arm="baseline")


def declared(facts: RunFacts) -> RunFacts:
    return headed(facts, declarations=("PARTIAL: 2 of 3 blocks",))


@pytest.mark.parametrize("change", [without_blocks, interrupted, declared], ids=lambda change: change.__name__)
def test_less_than_the_spec_asks_for_is_partial(change: object) -> None:
    assert callable(change)
    assert Heading.PARTIAL in judge(change(shared_run())).headings


def test_a_failed_gate_is_flagged() -> None:
    def refuse(request: RequestRecord) -> RequestRecord:
        rounds = (request.completion_tokens or 0) - 1
        return replace(request, histogram=(rounds,), verify_rounds=rounds, correct_drafts=0)

    assert Heading.GATE_FAILED in judge(edit_requests(shared_run(), refuse, arm="eagle3_k1")).headings


def test_a_run_that_finished_nothing_is_judged_all_the_same() -> None:
    empty = replace(shared_run(), repetitions=(), requests=())
    found = judge(empty)
    assert "no arm was compared" in found.answer
    assert "nothing was measured" in found.answer
    assert Heading.PARTIAL in found.headings
    assert next(one.what for one in found.not_measured) == "anything"


def test_a_run_without_a_launch_is_judged_all_the_same() -> None:
    none = replace(shared_run(), launches=(), cells=(), repetitions=(), requests=())
    assert "nothing was measured" in judge(none).answer


def test_whatever_is_missing_has_a_reason() -> None:
    for found in (verdict(), imported(H200), imported(CPU)):
        assert all(one.what and one.reason for one in found.not_measured)
    what = {one.what for one in imported(CPU).not_measured}
    assert {"throughput in the steady window", "time to first token", "end-to-end latency", "gate v1"} <= what


def test_limits_depend_on_what_was_run() -> None:
    joined = " ".join(imported(H200).limits)
    assert "not made under these rules" in joined
    assert "adaptive K" in joined
    assert "adaptive K" not in " ".join(verdict().limits)


def test_what_ran_identifies_the_run() -> None:
    ran = imported(H200).what_ran
    assert ran.origin is Origin.IMPORTED
    assert [launch.arm for launch in ran.launches] == ["eagle3_k7", "baseline", "adaptive", "eagle3_k3"]
    assert ("SGLang, answered", "0.5.15.post1") in {(named.name, named.value) for named in ran.engine}
    assert ran.declarations == facts_of(H200).header.declarations


def test_the_simulated_truth_is_no_fact_of_the_host() -> None:
    host = {"cpu": {"model": "x", "cores": 2}, "simulated_truth": {"throughput": {}, "crossover": {}}}
    found = judge(headed(shared_run(), host=host)).what_ran.host
    assert [(named.name, named.value) for named in found] == [("cpu.model", "x"), ("cpu.cores", "2")]


def leaves(value: object) -> Iterator[object]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@pytest.mark.parametrize("found", [verdict, lambda: imported(H200), lambda: imported(CPU)])
def test_a_verdict_is_a_tree_that_json_can_hold(found: object) -> None:
    assert callable(found)
    for leaf in leaves(found()):
        assert leaf is None or type(leaf) in (str, int, float, bool) or isinstance(leaf, Enum), repr(leaf)


def test_valid_cells_are_counted_of_those_planned_not_of_those_measured() -> None:
    facts = shared_run()
    fewer = replace(facts, cells=facts.cells[:6], repetitions=facts.repetitions[:6])
    kept = {repetition.repetition for repetition in fewer.repetitions}
    fewer = replace(fewer, requests=tuple(one for one in facts.requests if one.repetition in kept))
    assert judge(fewer).answer.endswith("of 18 planned cells are valid.")
