"""One row of `requests.jsonl`: checked once, then turned into a request record.

Fields: `v` arm (`0` no speculation, digits a fixed K, `adaptive`), `c` concurrency, `i` prompt index, the same prompt
in every arm, `cat` workload class, `status`, `t0` and `t1` client seconds since the cell began (optional), `meta` the
server's meta_info, `ids` output token ids, `err` error text (optional).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kit.errors import ImportFileError
from kit.importers.jsonl import LARGEST, LONGEST_S, REMEDY, Line, read_lines
from kit.records import Outcome, RequestRecord
from kit.sglang import ContractViolation, Meta, read_meta
from kit.units import NS_PER_S, Seconds, Tokens

__all__ = ["ADAPTIVE", "BASELINE", "Row", "arm_name", "read_rows", "request_record"]

BASELINE, ADAPTIVE = "0", "adaptive"


@dataclass(frozen=True, slots=True)
class Row:
    """A request as recorded. Times are client seconds since the cell began, None where none were kept.

    `meta` is None unless the answer was a 200; `raw_meta` is what it was read from.
    """

    line: Line
    arm: str
    concurrency: int
    index: int
    prompt_class: str
    status: int
    sent_s: Seconds | None
    ended_s: Seconds | None
    answered_s: Seconds | None
    meta: Meta | None
    raw_meta: Mapping[str, Any]
    ids: list[int]
    error: str | None

    @property
    def asked_tokens(self) -> Tokens | None:
        """The cap that ended the request; None when something else did."""
        length = self.raw_meta.get("finish_reason", {}).get("length") if self.meta else None
        return length if type(length) is int and 0 < length <= LARGEST else None


def arm_name(label: str) -> str:
    """The kit's name of a capture's arm: `0` is the baseline, digits are a fixed K."""
    if label == BASELINE:
        return "baseline"
    return "adaptive" if label == ADAPTIVE else f"eagle3_k{int(label)}"


def read_rows(path: Path) -> tuple[Row, ...]:
    """Every request of a capture, in file order."""
    rows = tuple(_row(line) for line in read_lines(path))
    if not rows:
        raise ImportFileError(f"{path}: holds no request; give a capture with at least one")
    seen: set[tuple[str, int, int]] = set()
    for row in rows:
        key = (row.arm, row.concurrency, row.index)
        if key in seen:
            row.line.refuse("i", f"new: arm {row.arm} at concurrency {row.concurrency} has this prompt already")
        seen.add(key)
    return rows


def _row(line: Line) -> Row:
    status, arm = line.count("status"), _arm(line)
    raw = line.mapping("meta") if status == 200 else {}
    sent, ended = line.seconds_or_none("t0"), line.seconds_or_none("t1")
    if (sent is None) != (ended is None) or (sent is not None and ended is not None and ended < sent):
        line.refuse("t1", f"an end after t0 {sent}")
    return Row(
        line=line,
        arm=arm,
        concurrency=line.count("c") or line.refuse("c", "a concurrency from 1"),
        index=line.count("i"),
        prompt_class=line.text("cat"),
        status=status,
        sent_s=sent,
        ended_s=ended,
        answered_s=_answered(raw),
        meta=_meta(line, raw, arm) if status == 200 else None,
        raw_meta=raw,
        ids=line.integers("ids") if status == 200 else [],
        error=None if line.values.get("err") is None else line.text("err"),
    )


def _arm(line: Line) -> str:
    label = line.text("v")
    if label != ADAPTIVE and not (label.isascii() and label.isdecimal() and str(int(label)) == label):
        line.refuse("v", "an arm: 0, a draft length or adaptive")
    return label


def _answered(raw: Mapping[str, Any]) -> Seconds | None:
    """Wall clock of the server when it answered."""
    value = raw.get("response_sent_to_client_ts")
    return value if isinstance(value, float) and 0 <= value <= 10 * LONGEST_S else None


def _meta(line: Line, raw: Mapping[str, Any], arm: str) -> Meta:
    try:
        meta = read_meta(raw, speculative=arm != BASELINE)
    except ContractViolation as violation:
        raise ImportFileError(f"{line.path}:{line.number}: meta: {violation}; {REMEDY}") from None
    counts = (meta.completion_tokens, meta.prompt_tokens, meta.verify_rounds, *(meta.histogram or ()))
    if any(count is not None and count > LARGEST for count in counts):
        line.refuse("meta", "free of counts that no server can reach")
    return meta


def request_record(row: Row, *, repetition: int, index: int, origin_ns: int, max_new_tokens: Tokens) -> RequestRecord:
    """The record of `row`; `origin_ns` is where its cell begins, `max_new_tokens` what was asked for."""
    meta = row.meta
    return RequestRecord(
        repetition=repetition,
        index=index,
        rid=meta.rid if meta else "",
        prompt=f"p{row.index:05d}",
        prompt_class=row.prompt_class,
        max_new_tokens=max_new_tokens,
        sent_ns=_ns(row.sent_s, origin_ns),
        ended_ns=_ns(row.ended_s, origin_ns),
        outcome=_outcome(row),
        status=row.status,
        finish_reason=meta.finish_reason if meta else None,
        error=row.error,
        prompt_tokens=meta.prompt_tokens if meta else None,
        completion_tokens=meta.completion_tokens if meta else None,
        cached_tokens=meta.cached_tokens if meta else None,
        verify_rounds=meta.verify_rounds if meta else None,
        correct_drafts=meta.correct_drafts if meta else None,
        histogram=meta.histogram if meta else None,
        retractions=meta.retractions if meta else None,
        meta_info=row.raw_meta or None,
        output_ids=np.array(row.ids, np.int64),
    )


def _outcome(row: Row) -> Outcome:
    meta = row.meta
    if meta is None:
        return Outcome.HTTP_ERROR
    if row.error is not None:
        return Outcome.STREAM_ERROR
    if meta.finish_reason == "abort":
        return Outcome.ABORTED
    if meta.matched == "NaN happened":
        return Outcome.NAN
    return Outcome.OK if meta.completion_tokens else Outcome.EMPTY


def _ns(seconds: Seconds | None, origin_ns: int) -> int:
    return origin_ns + round((seconds or 0.0) * NS_PER_S)
