"""SGLang's words to ours: the final `meta_info` of an answer, and what it counts about drafts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

__all__ = [
    "COUNT_IDENTITIES",
    "ContractViolation",
    "DraftCounts",
    "Meta",
    "TokenChoice",
    "added_counts",
    "broken_counts",
    "draft_counts",
    "preference",
    "read_meta",
    "token_choice",
]

# The same count under the names of three generations, newest first.
_CORRECT_DRAFTS = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_PROPOSED_DRAFTS = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")

# Some builds round what they divide.
_ROUNDED = 0.005

COUNT_IDENTITIES = ("names of one count", "proposed drafts", "acceptance rate", "tokens a round")
"""What `broken_counts` can find, in its order."""


class ContractViolation(ValueError):
    """An answer lacks something that SGLang promises; the message names the key."""


@dataclass(frozen=True, slots=True)
class Meta:
    """What a finished request reports about itself; counts are tokens unless named otherwise.

    `histogram[j]` counts verify rounds with exactly j accepted drafts (bonus excluded, last round not clipped);
    None when the server reports no verify round.
    """

    rid: str
    finish_reason: str
    matched: str | int | None
    prompt_tokens: int | None
    completion_tokens: int
    cached_tokens: int | None
    retractions: int | None
    verify_rounds: int | None
    correct_drafts: int | None
    histogram: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class DraftCounts:
    """What an answer, or several added up, counts about drafts; the last three are None where nobody counted them.

    `histogram[j]` counts verify rounds with exactly j correct drafts; the bonus token is in none of the counts.
    """

    completion_tokens: int
    verify_rounds: int
    correct_drafts: int | None
    proposed_drafts: int | None
    histogram: tuple[int, ...] | None

    @property
    def tokens_a_round(self) -> float:
        """Completion tokens over verify rounds, as SGLang reports it: with prefill's token, without trimmed ones."""
        return self.completion_tokens / self.verify_rounds

    @property
    def acceptance_rate(self) -> float | None:
        """Share of the proposed drafts that were correct; None where one of the two was not counted, or is 0."""
        if self.correct_drafts is None or not self.proposed_drafts:
            return None
        return self.correct_drafts / self.proposed_drafts


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """How near a greedy choice was: log-probability of the best token minus the second's, and another token's rank.

    `rank` counts from 1, behind whatever ties with it; None where there was no other token. A token that is not listed
    ranks behind those that are.
    """

    margin: float
    rank: int | None


def token_choice(meta: Mapping[str, Any], *, at: int, token: int | None) -> TokenChoice | None:
    """The choice of output position `at`, from `output_top_logprobs` of a request with `top_logprobs_num` >= 2.

    None where it was not recorded, or not in SGLang's form of [log-probability, token, text].
    """
    try:
        chances = {int(entry[1]): float(entry[0]) for entry in meta["output_top_logprobs"][at]}
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    if len(chances) < 2 or not all(map(math.isfinite, chances.values())):
        return None
    best, second, *_ = sorted(chances.values(), reverse=True)
    own = chances.get(token, -math.inf) if token is not None else None
    rank = None if own is None else 1 + sum(chance >= own for other, chance in chances.items() if other != token)
    return TokenChoice(best - second, rank)


def preference(meta: Mapping[str, Any], *, at: int, token: int) -> float | None:
    """By how much log-probability output position `at` prefers `token` to the best other one; negative if it does not.

    None where the choice was not recorded. A token that is not listed counts as unlikely as the last that is.
    """
    choice = token_choice(meta, at=at, token=None)
    if choice is None:
        return None
    chances = {int(entry[1]): float(entry[0]) for entry in meta["output_top_logprobs"][at]}
    own = chances.pop(token, min(chances.values()))
    return own - max(chances.values())


def draft_counts(meta: Mapping[str, Any]) -> DraftCounts | None:
    """The counts in a `meta_info`, whatever its generation calls them.

    None when it counts no verify round: the server does not speculate, does not say, or answered from prefill alone.
    Raises ContractViolation for a value that is no count.
    """
    rounds, completion = _count(meta, ("spec_verify_ct",)), _count(meta, ("completion_tokens",))
    if not rounds or completion is None:
        return None
    return DraftCounts(
        completion_tokens=completion,
        verify_rounds=rounds,
        correct_drafts=_count(meta, _CORRECT_DRAFTS),
        proposed_drafts=_count(meta, _PROPOSED_DRAFTS),
        histogram=_histogram(meta),
    )


def added_counts(counts: Iterable[DraftCounts | None]) -> DraftCounts | None:
    """Several answers as one; answers without a round are left out, and None is what is left of none.

    A count that one of the answers lacks is None in the sum: part of it would be mistaken for all.
    """
    known = [one for one in counts if one is not None]
    if not known:
        return None
    return DraftCounts(
        completion_tokens=sum(one.completion_tokens for one in known),
        verify_rounds=sum(one.verify_rounds for one in known),
        correct_drafts=_sum([one.correct_drafts for one in known]),
        proposed_drafts=_sum([one.proposed_drafts for one in known]),
        histogram=_added([one.histogram for one in known]),
    )


def _sum(values: list[int | None]) -> int | None:
    return None if None in values else sum(value for value in values if value is not None)


def _added(histograms: list[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    known = [histogram for histogram in histograms if histogram is not None]
    if len(known) < len(histograms):
        return None
    return tuple(map(sum, zip_longest(*known, fillvalue=0)))


def broken_counts(meta: Mapping[str, Any], *, drafts_a_round: int | None) -> Iterator[str]:
    """Which of `COUNT_IDENTITIES` a `meta_info` breaks; none when it counts no verify round.

    `drafts_a_round` is what the server proposes in each round, K for a chain and draft tokens - 1 for a tree; None
    where K changes, because the proposed count is then that of the launch.
    """
    counts = draft_counts(meta)
    if counts is None:
        return
    proposed, rate = counts.proposed_drafts, counts.acceptance_rate
    expected = None if drafts_a_round is None else drafts_a_round * counts.verify_rounds
    broken = (
        any(_disagree(meta, names) for names in (_CORRECT_DRAFTS, _PROPOSED_DRAFTS, _HISTOGRAM)),
        proposed is not None and expected is not None and proposed != expected,
        rate is not None and _differs(meta.get("spec_accept_rate"), rate),
        _differs(meta.get("spec_accept_length"), counts.tokens_a_round),
    )
    yield from (name for name, is_broken in zip(COUNT_IDENTITIES, broken, strict=True) if is_broken)


def _disagree(meta: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    values = [meta[name] for name in names if meta.get(name) is not None]
    return any(value != values[0] for value in values)


def _differs(reported: object, value: float) -> bool:
    """Whether a reported ratio is another one; an absent ratio says nothing."""
    if reported is None:
        return False
    return not isinstance(reported, int | float) or abs(reported - value) > _ROUNDED


def read_meta(meta: Mapping[str, Any], *, speculative: bool) -> Meta:
    """The counts in a final `meta_info`.

    Raises ContractViolation when a promised key is missing: under speculation a request of more than one token
    has had a verify round, and then its counts must be there under one of the names SGLang has used.
    """
    finish = meta.get("finish_reason")
    if not isinstance(finish, Mapping) or "type" not in finish:
        raise ContractViolation(f"meta_info.finish_reason is {finish!r} on a final answer")
    completion = _count(meta, ("completion_tokens",))
    if completion is None:
        raise ContractViolation("meta_info.completion_tokens is missing")
    rounds, counts = _count(meta, ("spec_verify_ct",)), draft_counts(meta)
    if speculative and rounds is None and completion > 1 and finish["type"] != "abort":
        raise ContractViolation("meta_info.spec_verify_ct is missing although the server speculates")
    if speculative and counts is not None and counts.histogram is None:
        raise ContractViolation(f"none of {', '.join(_HISTOGRAM)} is in meta_info although spec_verify_ct is")
    return Meta(
        rid=str(meta.get("id", "")),
        finish_reason=str(finish["type"]),
        matched=finish.get("matched"),
        prompt_tokens=_count(meta, ("prompt_tokens",)),
        completion_tokens=completion,
        cached_tokens=_count(meta, ("cached_tokens",)),
        retractions=_count(meta, ("num_retractions",)),
        verify_rounds=rounds,
        correct_drafts=counts.correct_drafts if counts else None,
        histogram=counts.histogram if counts else None,
    )


def _count(meta: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = meta.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ContractViolation(f"meta_info.{name} is {value!r}, not a count")
        return value
    return None


def _histogram(meta: Mapping[str, Any]) -> tuple[int, ...] | None:
    name = next((name for name in _HISTOGRAM if name in meta), None)
    if name is None:
        return None
    values = meta[name]
    if not isinstance(values, list) or any(isinstance(v, bool) or not isinstance(v, int) or v < 0 for v in values):
        raise ContractViolation(f"meta_info.{name} is {values!r}, not a list of counts")
    return tuple(values)
