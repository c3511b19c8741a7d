from __future__ import annotations

import math
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.errors import SpecError
from kit.standin.text import EOS, tokenize
from kit.standin.world import World, load_world, presets

CROSSOVER = load_world("crossover")
CROSSOVER_TEXT = resources.files("kit.standin").joinpath("worlds", "crossover.yaml").read_text("utf-8")


def round_starts(world: World, prompt: tuple[int, ...], *, depth: int, tokens: int) -> set[int]:
    text, start, starts = world.answer(prompt, length=tokens + depth + 1, speculates=True), 1, set()
    while start < tokens:
        starts.add(start)
        start += text.accepted(start, depth=depth) + 1
    return starts


def test_every_preset_is_a_world_of_its_own_name() -> None:
    assert {"adaptive", "baseline-dominates", "crossover", "invariant", "lossy", "shifted"} <= set(presets())
    assert all(load_world(name).name == name for name in presets())


@pytest.mark.parametrize("deep, shallow", [(7, 3), (7, 1), (3, 1), (5, 1), (5, 2)])
def test_round_starts_of_a_deep_run_are_starts_of_a_shallow_one(deep: int, shallow: int) -> None:
    world = load_world("invariant")
    for prompt in range(40):
        inner = round_starts(world, (prompt,), depth=deep, tokens=200)
        assert inner <= round_starts(world, (prompt,), depth=shallow, tokens=200)


def test_round_starts_do_not_nest_where_the_draft_depends_on_depth() -> None:
    world = load_world("shifted")
    starts = [[round_starts(world, (p,), depth=k, tokens=200) for k in (7, 1)] for p in range(40)]
    assert any(not deep <= shallow for deep, shallow in starts)


@given(st.lists(st.integers(0, 50_000), min_size=1, max_size=30), st.integers(2, 60))
def test_the_greedy_text_depends_on_the_prompt_alone(prompt: list[int], length: int) -> None:
    baseline = CROSSOVER.answer(tuple(prompt), length=length, speculates=False)
    longer = CROSSOVER.answer(tuple(prompt), length=length + 20, speculates=True)
    assert baseline.tokens == longer.tokens[:length]


def test_another_prompt_world_or_sample_gives_another_text() -> None:
    texts = [
        CROSSOVER.answer((5, 6), length=20, speculates=False),
        CROSSOVER.answer((5, 7), length=20, speculates=False),
        CROSSOVER.answer((5, 6), length=20, speculates=False, sample=1),
        load_world("invariant").answer((5, 6), length=20, speculates=False),
    ]
    assert len({tuple(text.tokens) for text in texts}) == len(texts)


def test_an_answer_ends_between_the_shortest_and_the_longest_length() -> None:
    ends = [CROSSOVER.answer((p,), length=80, speculates=False).tokens.index(EOS) + 1 for p in range(300)]
    assert (min(ends), max(ends)) == (CROSSOVER.text.shortest, CROSSOVER.text.longest)


def test_only_a_lossy_world_leaves_the_greedy_text_when_it_speculates() -> None:
    lossy = load_world("lossy")
    pairs = [[lossy.answer((p,), length=200, speculates=s).tokens for s in (False, True)] for p in range(50)]
    first = [next((i for i, (a, b) in enumerate(zip(*pair, strict=True)) if a != b), None) for pair in pairs]
    assert 20 < sum(place is not None for place in first) < 45
    # From the first difference on the texts go different ways.
    for (plain, other), place in zip(pairs, first, strict=True):
        if place is not None and place < 180:
            assert sum(a == b for a, b in zip(plain[place:], other[place:], strict=True)) <= 2


def test_iteration_times_follow_the_cost_model() -> None:
    cost = CROSSOVER.cost
    assert cost.decode_s(1, depth=None) == pytest.approx((4.5 + 0.2) / 1e3)
    assert cost.decode_s(8, depth=3, draft_tokens=4) == pytest.approx((4.5 + 0.2 * 8 * 4 + 0.25 * 3 + 0.6) / 1e3)
    assert cost.decode_s(1, depth=0) > cost.decode_s(1, depth=None)
    assert cost.prefill_s(100) == pytest.approx((4.5 + 2.0) / 1e3)


def test_launches_differ_by_the_launch_deviation() -> None:
    factors = [CROSSOVER.launch_factor(seed) for seed in range(400)]
    mean = sum(factors) / len(factors)
    deviation = (sum((f - mean) ** 2 for f in factors) / len(factors)) ** 0.5
    assert mean == pytest.approx(1.0, abs=0.004)
    assert deviation == pytest.approx(0.015, abs=0.002)
    assert CROSSOVER.launch_factor(3) == CROSSOVER.launch_factor(3)


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("name: [", "not YAML"),
        ("name: x\nabout: y\nseed: 1\n", "cost"),
        (CROSSOVER_TEXT.replace("seed", "speed: 3\nseed"), "speed"),
    ],
)
def test_a_wrong_world_is_refused_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "world.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=complaint) as caught:
        load_world(str(path))
    assert "\n" not in str(caught.value)


def test_an_unknown_world_names_the_presets() -> None:
    with pytest.raises(SpecError, match="crossover"):
        load_world("nowhere")


def test_easy_words_make_a_class_of_prompts_easier_for_the_draft() -> None:
    draft = {"easy_words": ["function"], "easy_prompts": 0.0, "easy_text": [1.0, 0.0], "accept": [1.0, 0.0]}
    world = World.model_validate({**CROSSOVER.model_dump(), "draft": draft})
    code, chat = (tokenize(text) for text in ("Write a function that sorts.", "Write a letter that thanks."))
    accepted = [world.answer(ids, length=40, speculates=True).accepted(1, depth=3) for ids in (code, chat)]
    assert accepted == [3, 0]


def test_drift_slows_each_further_launch_and_no_other_world() -> None:
    quiet = {"launch_sd": 0.0, "iteration_sd": 0.0}
    steady = World.model_validate({**CROSSOVER.model_dump(), "noise": quiet})
    warming = World.model_validate({**CROSSOVER.model_dump(), "noise": quiet | {"drift": 0.01}})
    assert [steady.launch_factor(seed) for seed in (0, 5)] == [1.0, 1.0]
    assert [warming.launch_factor(seed) for seed in (0, 5)] == pytest.approx([1.0, math.exp(0.05)])
