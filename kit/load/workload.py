"""The exact, seeded list of prompts of a run, and its hash.

A workload file is JSONL. A line is a prompt (`id`, `class`, `text`), a template (`id`, `class`, `template`, `slots`),
which stands for the product of its slots, or a conversation of another tool. Selection is by class, in equal shares or
by quota, interleaved so that every window of consecutive requests mixes the classes, unless the spec asks otherwise.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kit.errors import SpecError
from kit.load.conversations import opening
from kit.load.mix import by_block, counts, in_phases, interleaved
from kit.spec import Workload, canonical_json

__all__ = ["Prompt", "Prompts", "load_prompts", "read_prompt_file", "sent"]


_SLOT = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt and the output length asked for, the same for every arm."""

    id: str
    prompt_class: str
    text: str
    max_new_tokens: int


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a run in send order; block b of B uses the b-th part."""

    prompts: tuple[Prompt, ...]
    sha256: str

    def part(self, block: int, blocks: int) -> tuple[Prompt, ...]:
        """The prompts of block `block` (from 0) of `blocks`: equal parts, the same for every arm."""
        size = len(self.prompts) // blocks
        return self.prompts[block * size : (block + 1) * size]


def sent(block: Sequence[Prompt], requests: int, *, mix: str) -> tuple[Prompt, ...]:
    """What a cell of so many requests sends of a block, in order."""
    return in_phases(block[:requests]) if mix == "phases" else tuple(block[:requests])


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = Field(min_length=1)
    prompt_class: str = Field(min_length=1, alias="class")
    text: str | None = Field(default=None, min_length=1)
    template: str | None = Field(default=None, min_length=1)
    slots: dict[str, Annotated[list[str], Field(min_length=1)]] | None = None

    def texts(self) -> Iterator[tuple[str, str]]:
        """(id, text) of every prompt that this line stands for."""
        if self.text is not None:
            yield self.id, self.text
            return
        names = list(self.slots or {})
        for n, values in enumerate(itertools.product(*(self.slots or {}).values())):
            text = self.template or ""
            for name, value in zip(names, values, strict=True):
                text = text.replace("{" + name + "}", value)
            yield f"{self.id}-{n:04d}", text


def read_prompt_file(path: Path) -> list[tuple[str, str, str]]:
    """(id, class, text) of every prompt in `path`, templates expanded; the name of the file is the default class.

    Raises SpecError naming file and line for a line that is none of the forms.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: the workload cannot be read ({error}); name a JSONL file beside the spec") from None
    return [
        prompt
        for number, raw in enumerate(_lines(content, path), start=1)
        if raw.strip()
        for prompt in (_conversation(raw, path, number) or _own(raw, path, number))
    ]


def _lines(content: str, path: Path) -> list[str]:
    """Lines of JSONL, or the elements of one JSON array, as ShareGPT comes."""
    if not content.lstrip().startswith("["):
        return content.splitlines()
    try:
        return [json.dumps(each) for each in json.loads(content)]
    except json.JSONDecodeError as error:
        raise SpecError(f"{path}:{error.lineno}: {error.msg}; a file that begins with [ is one JSON array") from None


def _conversation(raw: str, path: Path, number: int) -> list[tuple[str, str, str]] | None:
    """The prompt of a ShareGPT or OpenAI line; None for any other line."""
    try:
        row = json.loads(raw)
        text = opening(row) if isinstance(row, dict) else None
    except json.JSONDecodeError:
        return None
    except ValueError as error:
        raise SpecError(f"{path}:{number}: {error}; take the line out") from None
    if text is None:
        return None
    name = row.get("id", row.get("custom_id", f"{path.stem}-{number:06d}"))
    return [(str(name), str(row.get("class", path.stem)), text)]


def _own(raw: str, path: Path, number: int) -> list[tuple[str, str, str]]:
    line = _parse(raw, path, number)
    return [(id_, line.prompt_class, text) for id_, text in line.texts()]


def _parse(raw: str, path: Path, number: int) -> _Line:
    try:
        line = _Line.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "line"
        raise SpecError(f"{path}:{number}: {field}: {first['msg']}; a line is a prompt or a template") from None
    if (line.text is None) == (line.template is None):
        raise SpecError(f"{path}:{number}: give either `text` or `template` with `slots`")
    used, named = set(_SLOT.findall(line.template or "")), set(line.slots or {})
    for name in sorted(named - used):
        raise SpecError(f"{path}:{number}: slot `{name}` does not occur in the template; remove it")
    for name in sorted(used - named):
        raise SpecError(f"{path}:{number}: the template names slot `{name}`, which has no values; add them to slots")
    return line


def load_prompts(workload: Workload, *, base: Path, prompt_format: str = "{prompt}", blocks: int = 1) -> Prompts:
    """The prompts of the run, drawn without replacement and set into the target's chat format.

    Files are looked up below `base`. Raises SpecError when a file leaves `base`, a class is unknown or has too few
    prompts, or the classes do not fit `workload.mix` in so many `blocks`.
    """
    pool = [row for name in workload.files for row in read_prompt_file(_inside(base, name))]
    _refuse_repeats(pool)
    rng = np.random.default_rng(workload.seed)
    classes = tuple(workload.quotas or workload.classes or dict.fromkeys(row[1] for row in pool))
    drawn = [_draw(pool, name, n, rng) for name, n in counts(workload, classes, blocks=blocks).items()]
    apart = workload.mix == "homogeneous"
    rows = (by_block(drawn, blocks=blocks) if apart else interleaved(drawn))[: workload.prompts]
    lengths = rng.integers(workload.min_output_tokens, workload.max_output_tokens, len(rows), endpoint=True)
    prompts = tuple(
        Prompt(id_, cls, prompt_format.replace("{prompt}", text), int(n))
        for (id_, cls, text), n in zip(rows, lengths, strict=True)
    )
    return Prompts(prompts, _hash(prompts, workload.mix))


def _hash(prompts: Sequence[Prompt], mix: str) -> str:
    """SHA-256 (hex) of the prompts in order, and of the mix where it is not the first one that there was."""
    content = [asdict(prompt) for prompt in prompts]
    told = content if mix == "interleaved" else {"mix": mix, "prompts": content}
    return hashlib.sha256(canonical_json(told).encode()).hexdigest()


def _inside(base: Path, name: str) -> Path:
    path = (base / name).resolve()
    if not path.is_relative_to(base.resolve()):
        raise SpecError(f"workload file {json.dumps(name)} leaves the folder of the spec; keep it below {base}")
    return path


def _refuse_repeats(pool: Sequence[tuple[str, str, str]]) -> None:
    seen: set[str] = set()
    for id_, _, text in pool:
        if id_ in seen or text in seen:
            raise SpecError(f"prompt `{id_}` repeats an id or a text of the workload; make it distinct")
        seen.update((id_, text))


def _draw(
    pool: Sequence[tuple[str, str, str]], name: str, quota: int, rng: np.random.Generator
) -> list[tuple[str, str, str]]:
    rows = [row for row in pool if row[1] == name]
    if len(rows) < quota:
        raise SpecError(f"class `{name}` has {len(rows)} prompts and {quota} are asked for; lower workload.prompts")
    return [rows[i] for i in rng.permutation(len(rows))[:quota]]
