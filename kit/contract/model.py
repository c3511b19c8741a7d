"""What a contract is made of: fields, flags, hook targets, and the problems that checking against it finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Field", "Flag", "Hook", "Problem", "Values"]


class Values(StrEnum):
    """How many values follow an option."""

    NONE = "none"
    OPTIONAL = "optional"
    ONE = "one"
    SOME = "some"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Field:
    """A request or sampling field: its annotation as SGLang writes it, and its default (None if it has none)."""

    type: str
    default: object = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A server option.

    `field` is the server argument it sets, `type` that argument's type without `Optional`, `parser` the
    function SGLang converts the text with (empty: the type itself), `choices` None where any value goes or
    only running code can tell, `replacement` what a deprecated option tells its user to write instead.
    """

    name: str
    field: str
    type: str
    values: Values
    default: object = None
    required: bool = False
    choices: tuple[str, ...] | None = None
    aliases: tuple[str, ...] = ()
    parser: str = ""
    replacement: str = ""


@dataclass(frozen=True, slots=True)
class Hook:
    """A function that can be hooked: dotted target, signature, SHA-256 of its `inspect.getsource` text."""

    target: str
    signature: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing SGLang would refuse or silently drop.

    `field` is where it is (`sampling_params.seed`, `--page-size`), `value` what is there, `message` what is
    wrong with it, `suggestion` what to write instead, or empty.
    """

    field: str
    value: object
    message: str
    suggestion: str = ""

    def __str__(self) -> str:
        hint = f"; use {self.suggestion}" if self.suggestion else ""
        return f"{self.field} = {self.value!r}: {self.message}{hint}"
