from __future__ import annotations

import pytest

from kit.contract import load
from kit.standin.flags import parse_arguments
from kit.standin.intake import Body, Intake
from kit.standin.settings import resolve
from kit.standin.text import tokenize
from kit.standin.world import load_world

CONTRACT = load("0.5.15.post1")
GREEDY = {"temperature": 0, "max_new_tokens": 20}


def intake(*flags: str) -> Intake:
    argv = ("--model-path", "m", "--world", "crossover", *flags)
    settings = resolve(parse_arguments(argv, contract=CONTRACT), contract=CONTRACT)
    return Intake(load_world("crossover"), settings=settings, contract=CONTRACT)


def test_text_and_its_ids_are_the_same_prompt() -> None:
    launch = intake()
    by_text = launch.request(Body(text="hello there", sampling_params=GREEDY))
    assert by_text.prompt_tokens == 3
    ids = list(tokenize("hello there"))
    assert launch.request(Body(input_ids=ids, sampling_params=GREEDY)).text.tokens == by_text.text.tokens


def test_a_temperature_draws_another_answer_every_time_and_greedy_never_does() -> None:
    launch = intake()

    def answer(temperature: float) -> list[int]:
        return launch.request(Body(text="x", sampling_params=GREEDY | {"temperature": temperature})).text.tokens

    assert answer(0) == answer(0)
    assert answer(0.7) != answer(0.7)


def test_a_prompt_seen_before_is_cached_but_for_its_last_token_until_a_flush() -> None:
    launch = intake()
    hits = [launch.request(Body(input_ids=[5] * 10)).cached_tokens for _ in range(2)]
    launch.flush()
    hits.append(launch.request(Body(input_ids=[5] * 10)).cached_tokens)
    assert hits == [0, 9, 0]
    without = intake("--disable-radix-cache")
    assert [without.request(Body(input_ids=[5] * 10)).cached_tokens for _ in range(2)] == [0, 0]


def test_what_the_pool_cannot_hold_is_cut_off_or_refused() -> None:
    launch = intake("--max-total-tokens", "64")
    asked = launch.request(Body(input_ids=[5] * 10, sampling_params=GREEDY | {"max_new_tokens": 100}))
    assert asked.max_new_tokens == 64 - 1 - 10 - 1
    with pytest.raises(ValueError, match="exceeds the maximum allowed length"):
        launch.request(Body(input_ids=[5] * 60, sampling_params=GREEDY))


def test_stop_tokens_end_an_answer_unless_the_end_of_sequence_is_ignored() -> None:
    launch = intake()
    third = launch.request(Body(text="x", sampling_params=GREEDY)).text.tokens[2]
    stopping = GREEDY | {"stop_token_ids": [third]}
    assert launch.request(Body(text="x", sampling_params=stopping)).stop_at == 2
    assert launch.request(Body(text="x", sampling_params=stopping | {"ignore_eos": True})).stop_at is None


def test_sampling_seed_is_a_known_key_and_seed_is_not() -> None:
    intake().request(Body(text="x", sampling_params=GREEDY | {"sampling_seed": 1}))
    with pytest.raises(TypeError, match="Unexpected keyword argument 'seed'"):
        intake().request(Body(text="x", sampling_params=GREEDY | {"seed": 1}))


def test_the_end_of_sequence_waits_for_the_fewest_tokens_asked_for() -> None:
    launch = intake()
    free = launch.request(Body(text="x", sampling_params=GREEDY | {"max_new_tokens": 100}))
    end = free.stop_at or 0
    patient = GREEDY | {"max_new_tokens": 100, "min_new_tokens": end + 1}
    assert launch.request(Body(text="x", sampling_params=patient)).stop_at is None


@pytest.mark.parametrize(
    "key, value, words",
    [("min_p", 2, "in [0.0, 1.0], got 2"), ("repetition_penalty", 0, "in [0.0, 2.0], got 0"), ("top_k", 0, "got 0")],
)
def test_a_value_outside_its_range_is_refused_with_the_range(key: str, value: float, words: str) -> None:
    with pytest.raises(ValueError, match=rf"^{key} must be .*") as refused:
        intake().request(Body(text="x", sampling_params=GREEDY | {key: value}))
    assert words in str(refused.value)
    assert intake().request(Body(text="x", sampling_params=GREEDY | {"top_k": -1}))
