from __future__ import annotations

import json
from pathlib import Path

from kit.standin.engine import Speculation
from kit.standin.faults import Faults
from kit.standin.trace import TraceFile
from kit.standin.world import load_world
from tests.standin.worlds import engine, play, request

WORLD = load_world("crossover")


def test_a_line_is_on_disk_as_soon_as_it_is_written_and_prefills_are_left_out(tmp_path: Path) -> None:
    trace = TraceFile(tmp_path / "new", largest_graph=1)
    iterations = play(engine(WORLD, Speculation.chain(3)), request(WORLD, 0, tokens=6), request(WORLD, 1, tokens=20))
    for number, iteration in enumerate(iterations):
        trace.write(iteration, launch_s=number - 0.5, ready_s=float(number))
        lines = (tmp_path / "new" / "trace.jsonl").read_text().splitlines()
        assert len(lines) == number == trace.status()["records"]
    records = [json.loads(line) for line in lines]
    assert [record["i"] for record in records] == list(range(len(records)))
    assert set(records[0]) == {"i", "l", "t", "nd", "k", "bs", "r", "a", "g", "n", "p", "s"}
    assert records[0]["r"] == [["r000", 1, 0], ["r001", 1, 0]]
    assert (records[0]["nd"], records[0]["k"], records[0]["bs"], len(records[0]["a"])) == (4, 3, 2, 2)
    assert (records[0]["l"], records[0]["t"]) == (0.5, 1.0)
    prompts = sum(request(WORLD, number, tokens=6).prompt_tokens for number in (0, 1))
    assert [record["p"] for record in records] == [prompts, *[0] * (len(records) - 1)]
    assert records[0]["n"] == [2, 0]
    # Only batches up to the largest captured one run as a CUDA graph.
    assert {(record["bs"], record["g"]) for record in records} == {(2, False), (1, True)}
    trace.close()


def test_without_speculation_there_are_no_draft_tokens_to_record(tmp_path: Path) -> None:
    trace = TraceFile(tmp_path, largest_graph=8)
    for iteration in play(engine(WORLD, None), request(WORLD, 0, tokens=4)):
        trace.write(iteration, launch_s=0.0, ready_s=0.0)
    trace.close()
    records = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert [(record["nd"], record["a"], record["r"][0][1:]) for record in records] == [
        (None, None, [1, 0]),
        (None, None, [2, 0]),
        (None, None, [3, 0]),
        (None, None, [4, 1]),
    ]


def test_the_control_file_is_obeyed_when_asked_and_an_unknown_word_changes_nothing(tmp_path: Path) -> None:
    trace, control = TraceFile(tmp_path, largest_graph=8), tmp_path / "control"
    (_, decode, *_) = play(engine(WORLD, None), request(WORLD, 0, tokens=4))
    written = []
    for word in ("off", "of", "on"):
        control.write_text(word)
        trace.write(decode, launch_s=0.0, ready_s=0.0)  # what was in force until somebody asks
        trace.obey()
        trace.write(decode, launch_s=0.0, ready_s=0.0)
        status = trace.status()
        written.append((status["records"], status["enabled"], status["control"]))
    trace.close()
    assert written == [(1, False, "off"), (1, False, "of"), (2, True, "on")]


def test_a_trace_that_stops_counts_what_it_drops(tmp_path: Path) -> None:
    trace = TraceFile(tmp_path, largest_graph=8, faults=Faults(trace_stops=2))
    for iteration in play(engine(WORLD, None), request(WORLD, 0, tokens=6)):
        trace.write(iteration, launch_s=0.0, ready_s=0.0)
    status = trace.status()
    trace.close()
    assert (status["records"], status["enabled"]) == (2, False)
    assert status["dropped"] == 4 and status["stopped"]
