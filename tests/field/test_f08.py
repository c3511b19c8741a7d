"""Four kinds of content, four speed-ups: synthetic content is named as such before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kit.load import Prompt, doubtful_content, read_prompt_file
from tests.field.inputs import rows

RESULTS = {row["dataset"]: row for row in rows("F08", "results.jsonl")}
SHIPPED = Path(__file__).parents[2] / "specs" / "workloads"
PARAGRAPH = "The river rises in the hills, passes three mills and a stone bridge, and reaches the sea at last. "


def random_tokens(count: int, *, letters: str = "abcdefghijklmnopqrstuvwxyz") -> list[str]:
    """Texts of words drawn evenly from a large vocabulary, as a benchmark's random data set decodes them."""
    rng = np.random.default_rng(5)
    vocabulary = ["".join(rng.choice(list(letters), rng.integers(2, 9))) for _ in range(20_000)]
    return [" ".join(rng.choice(vocabulary, 80)) for _ in range(count)]


def shipped(name: str) -> list[str]:
    """Texts of one class of the workloads that come with the kit."""
    found = [row for path in SHIPPED.glob("*.jsonl") for row in read_prompt_file(path)]
    return [text for _, cls, text in found if cls == name][:80]


CONTENT = {
    "random-token-ids": random_tokens(40),
    "one-paragraph-repeated": [f"{PARAGRAPH * 12} Part {at}." for at in range(20)],
    "chat-80-questions": shipped("chat"),
    "code-164-tasks": shipped("code"),
}
SYNTHETIC = {"random-token-ids": "looks like random tokens", "one-paragraph-repeated": "repeats itself within 20 of 20"}


def said(texts: Sequence[str], *, name: str = "any") -> tuple[str, ...]:
    """What is declared of a class of these texts."""
    return doubtful_content([Prompt(f"p{at}", name, text, 8) for at, text in enumerate(texts)])


def test_the_case_holds_content_that_understates_and_content_that_overstates() -> None:
    ratios = {name: row["k3"] / row["none"] for name, row in RESULTS.items()}
    natural = [ratio for name, ratio in ratios.items() if name not in SYNTHETIC]
    assert ratios["random-token-ids"] < 1 < min(natural) < max(natural) < ratios["one-paragraph-repeated"]
    assert ratios["chat-80-questions"] == pytest.approx(1.42, abs=5e-3)


@pytest.mark.parametrize("dataset", RESULTS)
def test_synthetic_content_is_named_and_natural_content_is_not(dataset: str) -> None:
    found = said(CONTENT[dataset], name=dataset)
    if dataset not in SYNTHETIC:
        assert found == ()
        return
    assert all(one.startswith(f"SYNTHETIC CONTENT: class {dataset} ") for one in found)
    assert SYNTHETIC[dataset] in " ".join(found)
    assert "no claim about speculation" in found[0]


def test_a_chat_format_around_random_tokens_hides_nothing() -> None:
    wrapped = [f"<|user|> Please do the following now: {text} <|end|> <|assistant|>" for text in random_tokens(30)]
    assert "random tokens" in " ".join(said(wrapped))


def test_one_class_among_others_is_found() -> None:
    prompts = [
        Prompt(f"{name}-{at}", name, text, 8) for name, texts in CONTENT.items() for at, text in enumerate(texts)
    ]
    assert {sentence.split()[3] for sentence in doubtful_content(prompts)} == set(SYNTHETIC)


def test_random_words_of_another_alphabet_and_a_prompt_that_differs_in_a_number_are_found_too() -> None:
    assert "random tokens" in " ".join(said(random_tokens(30, letters="абвгдежзиклмнопрст")))
    numbered = [f"Case {at}. " + " ".join(random_tokens(6)) for at in range(12)]
    assert "one prompt over again in 12 of 12" in " ".join(said(numbered))


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.jsonl")), ids=lambda path: path.stem)
def test_no_class_that_comes_with_the_kit_is_synthetic(path: Path) -> None:
    prompts = [Prompt(id_, cls, text, 8) for id_, cls, text in read_prompt_file(path)]
    assert doubtful_content(prompts) == ()
