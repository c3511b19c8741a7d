"""Prompts from the files of others: what stands before the first reply, and nothing of the reply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.errors import SpecError
from kit.load import read_prompt_file
from kit.load.conversations import opening

SHARE = {"id": "s1", "conversations": [{"from": "human", "value": "Hi."}, {"from": "gpt", "value": "Hello."}]}
OPENAI = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}]}
BATCH = {"custom_id": "b1", "body": {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}}
PARTS = {"messages": [{"role": "user", "content": [{"type": "text", "text": "H"}, {"type": "text", "text": "i."}]}]}


def read(folder: Path, text: str) -> list[tuple[str, str, str]]:
    (folder / "talk.jsonl").write_text(text)
    return read_prompt_file(folder / "talk.jsonl")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (SHARE, ("s1", "talk", "Hi.")),
        (OPENAI, ("talk-000001", "talk", "Be brief.\n\nHi.")),
        (OPENAI | {"class": "chat", "id": 7}, ("7", "chat", "Be brief.\n\nHi.")),
        (BATCH, ("b1", "talk", "Hi.")),
        (PARTS, ("talk-000001", "talk", "Hi.")),
    ],
    ids=["ShareGPT", "OpenAI", "named", "batch", "parts"],
)
def test_each_form_gives_its_prompt(tmp_path: Path, row: dict[str, Any], expected: tuple[str, str, str]) -> None:
    assert read(tmp_path, json.dumps(row) + "\n") == [expected]


def test_an_array_and_a_mixture_of_forms_are_read_in_order(tmp_path: Path) -> None:
    own = {"id": "p", "class": "code", "text": "x"}
    assert [row[0] for row in read(tmp_path, json.dumps([SHARE, own, BATCH], indent=1))] == ["s1", "p", "b1"]
    lines = "\n".join(map(json.dumps, [BATCH, own, SHARE]))
    assert [row[0] for row in read(tmp_path, lines)] == ["b1", "p", "s1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps({"conversations": [{"from": "gpt", "value": "x"}]}), r"talk\.jsonl:1: no user text"),
        (json.dumps({"messages": [{"role": "user", "content": " "}]}), "no user text"),
        (json.dumps({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}), "not text"),
        (json.dumps({"messages": ["x"]}), "a turn is an object, not str"),
        ('[{"id": "a"},', "is one JSON array"),
    ],
)
def test_a_line_without_a_prompt_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


TURNS = st.lists(st.tuples(st.sampled_from(["system", "user", "assistant", "human", "gpt"]), st.text(max_size=6)))


@given(TURNS)
def test_no_word_of_a_reply_or_after_it_is_ever_sent(turns: list[tuple[str, str]]) -> None:
    row = {"messages": [{"role": role, "content": text} for role, text in turns]}
    before = [
        text for role, text in turns[: next((at for at, (r, _) in enumerate(turns) if r in ("assistant", "gpt")), None)]
    ]
    try:
        assert opening(row) == "\n\n".join(before)
    except ValueError:
        assert not "".join(before).strip() or not any(role in ("user", "human") for role, _ in turns[: len(before)])
