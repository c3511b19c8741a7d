"""Four kinds of content, four speed-ups: synthetic content is named as such before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kit.load import Prompt, doubtful_content, read_prompt_file
from kit.records import SYNTHETIC as DECLARED
from kit.records import RunFacts
from kit.report.page import render
from kit.stats import SpeedWord, SweepWord
from kit.verdict import Content, Heading, judge
from tests.builders import build_run, build_spec, eagle3, edit_requests
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


def run_of(*classes: str) -> RunFacts:
    """A run at one concurrency of an arm that is half again as fast, on prompts of these classes in turns."""
    spec = build_spec(arms=[{"kind": "baseline", "name": "baseline"}, eagle3(3)], load={"concurrency": [4]})
    facts = build_run(spec, cost=lambda depth, batch: 0.020 if depth else 0.015)
    facts = edit_requests(facts, lambda one: replace(one, prompt_class=classes[int(one.prompt[1:]) % len(classes)]))
    prompts = [Prompt(f"p{at}", name, text, 8) for name in classes for at, text in enumerate(CONTENT[name])]
    return replace(facts, header=replace(facts.header, declarations=doubtful_content(prompts)))


def test_the_headline_names_the_natural_prompts_with_their_ratios_and_says_which_are_synthetic() -> None:
    verdict = judge(run_of(*RESULTS))
    assert verdict.speed.content == Content(("chat-80-questions", "code-164-tasks"), tuple(sorted(SYNTHETIC)))
    assert "some prompts are synthetic content (one-paragraph-repeated and random-token-ids)" in verdict.answer
    headline = verdict.answer.split("; ")[1]
    natural = [one for one in verdict.speed.classes if one.prompt_class not in SYNTHETIC]
    assert len(natural) == 2
    for one in natural:
        assert f"{one.ratio.point:.2f} [" in headline and one.prompt_class in headline
    assert not any(name in headline for name in SYNTHETIC)


@pytest.mark.parametrize("classes", [tuple(RESULTS), tuple(SYNTHETIC), ("one-paragraph-repeated",)])
def test_no_word_and_no_tolerance_is_had_from_synthetic_prompts(classes: tuple[str, ...]) -> None:
    verdict = judge(run_of(*classes))
    assert Heading.SYNTHETIC_CONTENT in verdict.headings
    assert {one.word for one in verdict.speed.comparisons} == {SpeedWord.INCONCLUSIVE}
    assert {(one.word, one.sentence) for one in verdict.speed.arms} == {
        (
            SweepWord.INCONCLUSIVE,
            "Some prompts are synthetic content, which carries no word about speculation.",
        )
    }
    if set(classes) <= set(SYNTHETIC):
        assert "every prompt is synthetic content" in verdict.answer


def test_natural_prompts_keep_their_word() -> None:
    verdict = judge(run_of("chat-80-questions", "code-164-tasks"))
    assert Heading.SYNTHETIC_CONTENT not in verdict.headings
    assert {one.word for one in verdict.speed.arms} == {SweepWord.EAGLE3_DOMINATES}


def test_tables_by_kind_of_prompt_mark_synthetic_content() -> None:
    facts = run_of(*RESULTS)
    assert sum(one.startswith(DECLARED) for one in facts.header.declarations) >= len(SYNTHETIC)
    page = render(judge(facts))
    for name in RESULTS:
        assert (f"{name} (synthetic content)" in page) == (name in SYNTHETIC)


def test_text_forced_past_its_end_is_called_a_bias() -> None:
    assert any(one.startswith("A bias: ignore_eos") for one in judge(run_of("chat-80-questions")).limits)


def test_a_script_without_spaces_is_natural_and_its_characters_at_random_are_not() -> None:
    natural = ["今天天气很好，我们去公园散步，然后回家吃饭，说说今天的事。" + chr(0x4E00 + at) for at in range(60)]
    assert said(natural) == ()
    rng = np.random.default_rng(3)
    drawn = ["".join(chr(0x4E00 + int(at)) for at in rng.integers(0, 20_000, 40)) for _ in range(60)]
    assert "random tokens" in " ".join(said(drawn))


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
