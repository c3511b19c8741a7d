"""Speculation with its side effects: what the servers really ran with differs in more than the draft."""

from __future__ import annotations

from dataclasses import replace

from kit.analysis import FlagClass, flag_differences
from kit.checks import CellState, Code
from kit.records import Launch
from kit.report import render
from kit.sglang import decode_lines, retracted_in
from kit.verdict import Verdict, judge
from tests.builders import build_run, build_spec, eagle3, edit_launches, edit_requests
from tests.field.inputs import objects, text

SPEC = build_spec(arms=[{"kind": "baseline", "name": "none"}, eagle3(3, name="k3")])
INFOS = {name: objects("F13", f"server_info_{name}.json") for name in ("none", "k3")}
SIDE_EFFECTS = {
    "attention_backend": ('"flashinfer"', '"fa3"'),
    "disable_overlap_schedule": ("true", "false"),
    "cuda_graph_max_bs": ("32", "160"),
    "mem_fraction_static": ("0.8", "0.874"),
    "max_total_num_tokens": ("238000", "412000"),
}


def unfair(infos: dict[str, dict[str, object]]) -> dict[str, tuple[str, str]]:
    found = flag_differences(SPEC, infos)
    return {one.flag: (one.arm_value, one.baseline_value) for one in found if one.flag_class is FlagClass.UNFAIR}


def verdict() -> Verdict:
    facts = edit_launches(build_run(SPEC), lambda one: replace(one, server_info=INFOS[one.arm]))
    return judge(facts)


def test_every_side_effect_is_found_though_nobody_typed_it() -> None:
    assert unfair(INFOS) == SIDE_EFFECTS


def test_a_default_that_nobody_has_heard_of_counts_too() -> None:
    assert unfair(INFOS | {"k3": INFOS["k3"] | {"brand_new_default": 3}}) == SIDE_EFFECTS | {
        "brand_new_default": ("3", "absent")
    }


def test_the_verdict_prints_the_table_and_takes_the_words_away() -> None:
    judged = verdict()
    assert {one.state for one in judged.doubts.cells if one.arm == "k3"} == {CellState.INVALID}
    document = render(judged)
    unasked = document.partition("nobody asked for the difference")[2].partition("###")[0]
    assert all(f"`{flag}`" in unasked for flag in SIDE_EFFECTS)


def test_retractions_are_counted_once_because_the_gauge_is_cumulative() -> None:
    log = text("F13", "server_k3.log")
    assert [line.retracted for line in decode_lines(log)][-2:] == [9, 23]
    assert retracted_in(log) == 23
    assert retracted_in("nothing of the kind") is None


def test_a_server_that_reports_no_retractions_is_judged_by_its_log() -> None:
    def logged(one: Launch) -> Launch:
        return replace(one, log=text("F13", "server_k3.log"))

    silent = edit_requests(build_run(SPEC), lambda one: replace(one, retractions=None), arm="k3")
    doubts = judge(edit_launches(silent, logged, arm="k3")).doubts.doubts
    assert {one.message for one in doubts if one.code is Code.RETRACTION} == {
        "the server's log counts 23 retracted requests"
    }
