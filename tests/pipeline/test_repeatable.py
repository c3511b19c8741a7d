"""The stand-in in wall-clock time: five runs of one spec give the same facts, however their seconds fell."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kit.console import Progress
from kit.pipeline import Sitting, run_spec
from kit.plan import Selection
from kit.records import Phase, RunFacts
from kit.store import read_run
from kit.verdict import judge
from tests.pipeline.test_experiment import write_spec

pytestmark = pytest.mark.slow

RUNS = 5
# An adaptive arm chooses K by what it served at once, which is a matter of milliseconds.
FIXED = Selection(arms=("baseline", "k3"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[RunFacts]:
    folder = tmp_path_factory.mktemp("runs")
    spec = write_spec(folder)
    files = [folder / f"run-{at}.duckdb" for at in range(RUNS)]
    for file in files:
        run_spec(spec, sitting=Sitting(out=file, selection=FIXED), watcher=Progress())
    return [read_run(file) for file in files]


def served(facts: RunFacts) -> Mapping[tuple[int, int, str], tuple[object, ...]]:
    """What came back of every request that was timed last, by launch, concurrency and prompt."""
    cells = {cell.cell: cell for cell in facts.cells}
    timed = {rep.repetition: cells[rep.cell] for rep in facts.repetitions if rep.phase is Phase.TIMED}
    return {
        (timed[one.repetition].launch, timed[one.repetition].concurrency, one.prompt): (
            one.outcome,
            one.finish_reason,
            one.output_ids.tolist(),
            one.histogram,
            one.prompt_tokens,
        )
        for one in facts.requests
        if one.repetition in timed
    }


def test_text_and_accepted_drafts_are_the_same_in_every_run(runs: list[RunFacts]) -> None:
    first = served(runs[0])
    assert len(first) == 2 * (3 + 8)
    for other in runs[1:]:
        assert served(other) == first


def test_the_verdict_says_the_same_of_text_and_acceptance(runs: list[RunFacts]) -> None:
    verdicts = [judge(facts) for facts in runs]
    for other in verdicts[1:]:
        assert other.gate.sentence == verdicts[0].gate.sentence
        assert [one.word for one in other.losslessness.rows] == [one.word for one in verdicts[0].losslessness.rows]
        assert [one.survival for one in other.acceptance] == [one.survival for one in verdicts[0].acceptance]
