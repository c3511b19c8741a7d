from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.standin.engine import Engine, Limits, Speculation
from kit.standin.iteration import Iteration, Kind
from kit.standin.request import Request
from kit.standin.world import load_world
from tests.standin.worlds import LADDER, engine, play, request

WORLD = load_world("crossover")
ARMS = [None, *(Speculation.chain(k) for k in (0, 1, 3, 7)), Speculation(2, 16), Speculation.chain(7, ladder=LADDER)]


def decodes(iterations: list[Iteration]) -> list[Iteration]:
    return [iteration for iteration in iterations if iteration.kind is Kind.DECODE]


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_writes_the_same_greedy_text(arm: Speculation | None) -> None:
    reference = [WORLD.answer((7, n), length=30, speculates=False).tokens for n in range(6)]
    requests = [request(WORLD, n, tokens=30) for n in range(6)]
    play(engine(WORLD, arm), *requests)
    assert [r.text.tokens[: r.produced] for r in requests] == reference
    assert all(r.finish == {"type": "length", "length": 30} for r in requests)


@settings(max_examples=25)
@given(st.integers(1, 7), st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(1, 12))
def test_the_books_of_every_request_balance(depth: int, lengths: list[int], running: int) -> None:
    requests = [request(WORLD, n, tokens=tokens) for n, tokens in enumerate(lengths)]
    iterations = play(engine(WORLD, Speculation.chain(depth), running_requests=running), *requests)
    for each in requests:
        rows = [row for it in decodes(iterations) for row in it.rows if row.request is each and not row.ghost]
        overshoot = 1 + sum((j + 1) * h for j, h in enumerate(each.histogram)) - each.produced
        assert sum(each.histogram) == len(rows)
        assert [sum(row.accepted == j for row in rows) for j in range(len(each.histogram))] == each.histogram
        assert 0 <= overshoot <= depth
        assert each.produced == each.max_new_tokens


def test_the_last_round_is_not_cut_in_the_histogram() -> None:
    every_draft_right = WORLD.model_copy(update={"draft": WORLD.draft.model_copy(update={"accept": (1.0, 1.0)})})
    asked = request(every_draft_right, 0, tokens=3)
    play(engine(every_draft_right, Speculation.chain(7)), asked)
    assert asked.histogram == [0, 0, 0, 0, 0, 0, 0, 1]
    assert asked.produced == 3


@pytest.mark.parametrize("arm", ARMS)
def test_a_finished_request_takes_part_in_one_more_decode(arm: Speculation | None) -> None:
    short, long = request(WORLD, 0, tokens=4), request(WORLD, 1, tokens=30)
    iterations = decodes(play(engine(WORLD, arm), short, long))
    for each in (short, long):
        ghosts = [i for i, it in enumerate(iterations) for row in it.rows if row.request is each and row.ghost]
        live = [i for i, it in enumerate(iterations) for row in it.rows if row.request is each and not row.ghost]
        assert ghosts == [live[-1] + 1]


def test_a_request_that_ends_at_prefill_leaves_a_ghost_and_no_round() -> None:
    asked = request(WORLD, 0, tokens=1)
    iterations = play(engine(WORLD, Speculation.chain(3)), asked)
    assert [(it.kind, [row.ghost for row in it.rows]) for it in iterations] == [
        (Kind.PREFILL, [False]),
        (Kind.DECODE, [True]),
    ]
    assert asked.histogram == [] and asked.produced == 1


def test_a_late_arrival_waits_for_the_iteration_that_is_already_launched() -> None:
    running = engine(WORLD, None)
    running.submit(request(WORLD, 0, tokens=20))
    kinds = [running.step(), running.step()]
    running.submit(request(WORLD, 1, tokens=20))
    kinds += [running.step(), running.step()]
    assert [it.kind for it in kinds if it] == [Kind.PREFILL, Kind.DECODE, Kind.DECODE, Kind.PREFILL]


def test_prefill_makes_the_first_token_and_goes_before_decoding() -> None:
    requests = [request(WORLD, n, tokens=9) for n in range(3)]
    first, second, *_ = play(engine(WORLD, Speculation.chain(1)), *requests)
    assert (first.kind, len(first.rows), first.draft_tokens) == (Kind.PREFILL, 3, None)
    assert {row.before for row in second.rows} == {1}
    assert second.draft_tokens == 2


def test_no_more_requests_run_than_are_allowed() -> None:
    requests = [request(WORLD, n, tokens=5 + n) for n in range(9)]
    iterations = play(engine(WORLD, Speculation.chain(3), running_requests=2), *requests)
    assert max(len(it.rows) for it in iterations) == 2
    assert all(r.finish for r in requests)
    assert iterations[1].waiting == 7


def test_requests_wait_until_the_pool_can_hold_all_they_may_need() -> None:
    small = Engine(WORLD, speculation=None, limits=Limits(8, pool_tokens=2 * (2 + 10)), launch_seed=None)
    iterations = play(small, *(request(WORLD, n, tokens=10) for n in range(4)))
    assert max(len(it.rows) for it in iterations) == 2


@pytest.mark.parametrize("arm", ARMS)
def test_an_answer_stops_at_its_end_of_sequence_token(arm: Speculation | None) -> None:
    asked = request(WORLD, 5, tokens=100, ignore_eos=False)
    play(engine(WORLD, arm), asked)
    assert asked.finish == {"type": "stop", "matched": 2}
    assert asked.text.tokens[asked.produced - 1] == 2
    assert 2 not in asked.text.tokens[: asked.produced - 1]


def test_the_length_limit_is_looked_at_before_the_end_of_sequence() -> None:
    """As in 0.5.15: a round that crosses both ends as `length`, with junk behind the end-of-sequence token."""
    text = WORLD.answer((7, 5), length=100, speculates=True)
    limit = (text.first(frozenset({2})) or 0) + 2
    asked = Request(rid="x", prompt_tokens=2, text=text, max_new_tokens=limit, stop_at=limit - 2, produced=limit - 3)
    asked.extend(4)
    assert asked.finish == {"type": "length", "length": limit}
    assert asked.text.tokens[asked.produced - 2] == 2


def test_a_server_that_looks_for_the_end_first_stops_there_unless_it_is_past_the_limit() -> None:
    text = WORLD.answer((7, 5), length=100, speculates=True)
    end = text.first(frozenset({2})) or 0
    for limit, finish in ((end + 2, "stop"), (end + 1, "stop"), (end, "length")):
        asked = Request(
            rid="x",
            prompt_tokens=2,
            text=text,
            max_new_tokens=limit,
            stop_at=end,
            stop_first=True,
            produced=end - 1,
        )
        asked.extend(4)
        assert (asked.finish or {})["type"] == finish
        assert asked.produced == min(end + 1, limit)


@pytest.mark.parametrize("arm", [None, Speculation.chain(3)])
def test_a_full_pool_sends_requests_back_to_the_queue_and_their_books_still_balance(arm: Speculation | None) -> None:
    bold = Engine(WORLD, speculation=arm, limits=Limits(8, pool_tokens=120, share=0.0), launch_seed=None)
    requests = [request(WORLD, n, tokens=40) for n in range(6)]
    iterations = play(bold, *requests)
    assert [r.text.tokens[: r.produced] for r in requests] == [
        WORLD.answer((7, n), length=40, speculates=False).tokens for n in range(6)
    ]
    assert sum(r.retractions for r in requests) == sum(len(it.retracted) for it in iterations) > 0
    for each in requests:
        rows = [row for it in iterations for row in it.rows if row.request is each and not row.ghost]
        overshoot = 1 + each.retractions + sum((j + 1) * h for j, h in enumerate(each.histogram)) - each.produced
        assert len(rows) == 1 + each.retractions + sum(each.histogram) if arm else len(rows) == each.produced
        assert arm is None or 0 <= overshoot <= 3


def test_the_newest_is_retracted_where_the_server_speculates_and_else_the_shortest_output() -> None:
    victims = []
    for arm in (None, Speculation.chain(3)):
        bold = Engine(WORLD, speculation=arm, limits=Limits(8, pool_tokens=60, share=0.0), launch_seed=None)
        old, new = request(WORLD, 0, tokens=40), request(WORLD, 1, tokens=40)
        old.produced, new.produced = 4, 8
        iterations = play(bold, old, new)
        victims.append(next(it.retracted[0] for it in iterations if it.retracted))
    assert [victim.rid for victim in victims] == ["r000", "r001"]


def test_without_a_bet_on_shorter_answers_nothing_is_retracted() -> None:
    careful = Engine(WORLD, speculation=Speculation.chain(3), limits=Limits(8, pool_tokens=120), launch_seed=None)
    requests = [request(WORLD, n, tokens=40) for n in range(6)]
    play(careful, *requests)
    assert [r.retractions for r in requests] == [0] * 6


def test_a_full_queue_rejects_what_comes() -> None:
    short = Engine(WORLD, speculation=None, limits=Limits(1, queued_requests=1), launch_seed=None)
    first, second = request(WORLD, 0, tokens=4), request(WORLD, 1, tokens=4)
    short.submit(first)
    short.submit(second)
    assert (first.finish, second.ended_in_queue) == (None, True)
    assert (second.finish or {})["status_code"] == 503


@pytest.mark.parametrize("arm", [None, Speculation.chain(3)])
def test_a_server_that_foresees_the_length_limit_leaves_a_ghost_only_for_other_ends(arm: Speculation | None) -> None:
    def ghosts(*, tokens: int, ignore_eos: bool) -> int:
        launch = Engine(WORLD, speculation=arm, limits=Limits(), launch_seed=None, foresees_length=True)
        asked = request(WORLD, 5, tokens=tokens, ignore_eos=ignore_eos)
        return sum(row.ghost for it in play(launch, asked) for row in it.rows)

    assert ghosts(tokens=1, ignore_eos=True) == 0
    assert ghosts(tokens=100, ignore_eos=False) == 1
    # Without speculation every token is foreseen; a round of several may end sooner than the next token would.
    assert arm is not None or ghosts(tokens=9, ignore_eos=True) == 0


def test_aborting_a_prefix_ends_waiting_requests_at_once_and_running_ones_after_a_forward() -> None:
    one = engine(WORLD, None, running_requests=1)
    running, waiting, other = (request(WORLD, n, tokens=20) for n in (10, 11, 20))
    for each in (running, waiting, other):
        one.submit(each)
    one.step()
    one.step()
    assert one.abort("r01") == (waiting,)
    assert waiting.finish == {"type": "abort", "message": "Abort in waiting queue"}
    play(one)
    assert running.finish is not None and running.finish["type"] == "abort"
    assert running.produced == 3
    assert other.finish == {"type": "length", "length": 20}


def test_an_adaptive_engine_feeds_ghosts_to_its_average_and_switches_one_launch_late() -> None:
    silent = WORLD.model_copy(update={"draft": WORLD.draft.model_copy(update={"accept": (0.0, 0.0)})})
    iterations = decodes(play(engine(silent, Speculation.chain(7, ladder=LADDER)), request(silent, 0, tokens=40)))
    # Fifteen results make the first decision; the iteration after the fifteenth is launched before it is known.
    assert [it.draft_tokens for it in iterations[:18]] == [8] * 16 + [2] * 2
    assert [i for i, it in enumerate(iterations) if it.switches] == [14]


def test_without_noise_durations_are_the_cost_model_and_with_it_they_repeat() -> None:
    exact = [it.duration_s for it in play(engine(WORLD, None), request(WORLD, 0, tokens=5))]
    assert exact[1:] == [WORLD.cost.decode_s(1, depth=None)] * 5

    def noisy(seed: int) -> list[float]:
        launch = Engine(WORLD, speculation=None, limits=Limits(), launch_seed=seed)
        return [it.duration_s for it in play(launch, request(WORLD, 0, tokens=5))]

    assert noisy(1) == noisy(1)
    assert noisy(1) != noisy(2)
    assert all(0.85 < n / e < 1.15 for n, e in zip(noisy(1), exact, strict=True))
