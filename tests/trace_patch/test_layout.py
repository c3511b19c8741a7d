"""The bytes, held against docs/trace.md."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest
from speckit_trace import layout

from tests.trace_patch import PLUGIN
from tests.trace_patch.written import Req, decode, recorder

DOCUMENT = (PLUGIN.parents[1] / "docs" / "trace.md").read_text(encoding="utf-8")


def test_all_records_of_a_segment_together_have_the_residue(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    for number in range(1, 20):
        decode(writer, number, [Req("a"), Req("b")], [1, 2])
    writer.end(iteration=19)
    (path,) = tmp_path.iterdir()
    records = path.read_bytes()[layout.SEGMENT_HEADER.size :]
    assert zlib.crc32(records, layout.RESIDUE) == layout.RESIDUE
    assert zlib.crc32(records[:-1] + bytes([records[-1] ^ 1]), layout.RESIDUE) != layout.RESIDUE


def test_a_record_longer_than_its_length_can_say_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than the format allows"):
        layout.first_word(layout.ITERATION, 4 << 24)


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        (r"format version, (\d+)", layout.FORMAT_VERSION),
        (r"### Segment header, (\d+) bytes", layout.SEGMENT_HEADER.size),
        (r"with the start value (0x[0-9A-F]+)", layout.RESIDUE),
        (r"a segment names at most ([\d,]+) requests", layout.MAX_REQUESTS),
        (r"draft tokens, (\d+) for none", layout.NO_DRAFTS),
        (r"K, (\d+) for none", layout.NO_DEPTH),
        (r"accepted drafts, (\d+) for none drafted", layout.NO_ACCEPTED),
        (r"running and waiting requests, (\d+) also", layout.SATURATED),
    ],
)
def test_the_document_states_the_numbers_of_the_code(statement: str, value: int) -> None:
    (found,) = re.findall(statement, DOCUMENT)
    assert int(found.replace(",", ""), 0) == value


def test_the_document_names_every_kind_of_record() -> None:
    kinds = {
        "header": layout.HEADER,
        "names": layout.RIDS,
        "iteration": layout.ITERATION,
        "switch of K": layout.SWITCH,
        "event": layout.EVENT,
        "short iteration": layout.SHORT,
        "prefill": layout.PREFILL,
    }
    assert all(re.search(rf"^\| {kind} {name} \|", DOCUMENT, re.MULTILINE) for name, kind in kinds.items())
