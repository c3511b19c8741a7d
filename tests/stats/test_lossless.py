"""Ties, violations and what silence proves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.stats import (
    Control,
    Divergence,
    LosslessWord,
    StatsError,
    cp_lower,
    cp_upper,
    first_divergence,
    lossless_verdict,
    losslessness,
    prefill_spread,
    rate_limits,
    tau_from_aa,
)

TIE = Divergence(margin=0.01, rank=2)
HARD = Divergence(margin=1.5, rank=2)
CALM = Control(prompts=768, diverged=12)

tokens = st.lists(st.integers(0, 3), max_size=12)


@given(tokens, tokens)
def test_the_first_divergence_is_where_the_common_prefix_ends(a: list[int], b: list[int]) -> None:
    found = first_divergence(a, b=b)
    assert found == first_divergence(b, b=a)
    if found is None:
        assert a == b
        return
    assert a[:found] == b[:found]
    assert found == min(len(a), len(b)) or a[found] != b[found]


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_limits_bracket_the_rate_and_meet_only_at_the_ends(count: tuple[int, int]) -> None:
    x, n = count
    lower, upper = cp_lower(x, n=n), cp_upper(x, n=n)
    assert lower is not None and upper is not None
    assert lower <= x / n <= upper
    assert (lower == 0) is (x == 0) and (upper == 1) is (x == n)


def test_silence_is_bounded_by_the_number_of_prompts() -> None:
    bounds = {n: cp_upper(0, n=n) for n in (24, 64, 192, 768, 3000)}
    assert [round(100 * (b or 0), 2) for b in bounds.values()] == [11.73, 4.57, 1.55, 0.39, 0.1]
    verdict = losslessness([], prompts=192, tau=0.05, control=CALM, spread=None)
    assert verdict.word is LosslessWord.LOSSLESS
    assert verdict.hard_rate.interval is not None
    assert verdict.hard_rate.interval.hi == pytest.approx(1 - 0.05 ** (1 / 192))
    assert cp_upper(0, n=0) is None and rate_limits(0, n=0).reason == "no prompt was compared"
    with pytest.raises(StatsError, match="3 of 2"):
        cp_upper(3, n=2)


def test_ties_at_the_control_rate_are_benign_and_more_of_them_are_not() -> None:
    few = losslessness([TIE] * 9, prompts=768, tau=0.05, control=CALM, spread=None)
    assert few.word is LosslessWord.BENIGN_DIVERGENCE and few.hard == 0
    many = losslessness([TIE] * 90, prompts=768, tau=0.05, control=CALM, spread=None)
    assert many.word is LosslessWord.UNRESOLVED and "more often than the A/A control" in (many.reason or "")
    alone = losslessness([TIE], prompts=768, tau=0.05, control=None, spread=None)
    assert alone.reason == "no A/A control says how often ties flip" and alone.excess_p is None


def test_a_hard_divergence_is_a_violation_only_once_prefill_confirms_it() -> None:
    confirmed = Divergence(margin=1.5, rank=2, prefill_margin=1.4)
    excused = Divergence(margin=1.5, rank=2, prefill_margin=0.02)

    def word(divergence: Divergence, spread: float | None) -> LosslessWord:
        return losslessness([divergence], prompts=768, tau=0.05, control=CALM, spread=spread).word

    assert word(confirmed, 0.1) is LosslessWord.VIOLATED
    assert word(excused, 0.1) is LosslessWord.BENIGN_DIVERGENCE
    assert word(HARD, 0.1) is LosslessWord.UNRESOLVED
    assert word(confirmed, None) is LosslessWord.UNRESOLVED
    both = losslessness([confirmed, excused, TIE], prompts=768, tau=0.05, control=CALM, spread=0.1)
    assert (both.hard, both.violations, both.excused) == (2, 1, 1)


def test_a_missing_margin_or_prompt_leaves_the_verdict_open() -> None:
    unknown = losslessness([Divergence(None, None)], prompts=10, tau=0.05, control=CALM, spread=0.1)
    assert unknown.word is LosslessWord.UNRESOLVED and unknown.unknown == 1
    assert "lack a margin" in (unknown.reason or "")
    nothing = losslessness([], prompts=0, tau=0.05, control=CALM, spread=None)
    assert nothing.word is LosslessWord.UNRESOLVED and nothing.reason == "no prompt was compared"
    assert lossless_verdict(0, divergences=[], tau=0.05, aa_n=None, aa_diverged=None)["verdict"] == "UNRESOLVED"


def test_tau_covers_the_noise_it_was_calibrated_on() -> None:
    rng = np.random.default_rng(4)
    sigma = 0.05
    margins: list[float] = []
    while len(margins) < 400:
        gap, noise = rng.uniform(0, 1), rng.normal(0, sigma)
        if noise > gap:
            margins.append(gap)
    tie = tau_from_aa(margins)
    assert tie["sigma"] == pytest.approx(sigma, rel=0.1)
    assert tie["tau"] >= 4 * tie["sigma"] and tie["tau"] > max(margins)
    with pytest.raises(StatsError, match="negative"):
        tau_from_aa([-0.1])


def test_the_prefill_spread_holds_a_constant_shift_too() -> None:
    rng = np.random.default_rng(5)
    decode = rng.uniform(0, 5, 500)
    assert prefill_spread(decode, prefill_margins=decode) == 0.01
    shifted = prefill_spread(decode, prefill_margins=decode + 0.1)
    assert shifted is not None and math.isclose(shifted, 0.4)
    assert prefill_spread([], prefill_margins=[]) is None
