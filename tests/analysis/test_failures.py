"""Failed answers find their traceback in the log of the living server, or nothing at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.analysis import FailedAnswer, failed_answers
from kit.records import Launch, Outcome, RequestRecord, RunFacts
from tests.builders import edit_launches, edit_requests, shared_run

BLOCK = """[2026-01-05 10:00:{second:02d}] ERROR:    Exception in ASGI application
Traceback (most recent call last):
  File "x.py", line 1, in handle
TypeError: Unexpected keyword argument '{key}'
"""


def failing(*keys: str, outcome: Outcome = Outcome.HTTP_ERROR, status: int | None = 500, count: int = 2) -> RunFacts:
    """The first requests of the first pass fail, and the log of every launch has a traceback for each of `keys`."""
    log = "healthy\n" + "".join(BLOCK.format(second=at, key=key) for at, key in enumerate(keys))

    def fail(request: RequestRecord) -> RequestRecord:
        return replace(request, outcome=outcome, status=status)

    def logged(launch: Launch) -> Launch:
        return replace(launch, log=log)

    facts = edit_launches(edit_requests(shared_run(), fail, first=count), logged)
    span = {"log_lines": [1, log.count("\n")]}
    return replace(facts, repetitions=tuple(replace(r, client={**r.client, **span}) for r in facts.repetitions))


def reasons(facts: RunFacts) -> list[tuple[str, int | None] | None]:
    def told(answer: FailedAnswer) -> tuple[str, int | None] | None:
        return (answer.why.evidence.split("'")[1], answer.why.line) if answer.why else None

    return [told(answer) for answer in failed_answers(facts)]


def test_answers_and_tracebacks_of_equal_number_are_paired_in_order() -> None:
    assert reasons(failing("seed", "top")) == [("seed", 5), ("top", 9)]


def test_tracebacks_that_say_the_same_serve_every_answer() -> None:
    assert reasons(failing("seed", "seed", "seed")) == [("seed", 5), ("seed", 9)]
    assert reasons(failing("seed", count=2)) == [("seed", 5), ("seed", 5)]


def test_tracebacks_of_another_number_and_several_kinds_explain_nothing() -> None:
    assert reasons(failing("seed", "top", "n")) == [None, None]


@pytest.mark.parametrize("outcome", [Outcome.CUT, Outcome.RESET])
def test_a_body_that_breaks_off_is_the_servers_doing_too(outcome: Outcome) -> None:
    assert reasons(failing("seed", "top", outcome=outcome, status=200)) == [("seed", 5), ("top", 9)]


def test_an_answer_that_says_itself_what_is_wrong_needs_no_traceback() -> None:
    assert reasons(failing("seed", "top", status=400)) == [None, None]


def test_without_a_note_of_the_logs_length_nothing_is_joined() -> None:
    facts = failing("seed", "top")
    bare = replace(facts, repetitions=tuple(replace(r, client={}) for r in facts.repetitions))
    assert reasons(bare) == [None, None]


def test_a_sound_run_has_no_failed_answer() -> None:
    assert failed_answers(shared_run()) == ()
