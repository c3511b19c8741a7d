"""Reading JSON and JSON lines, plain or xz-compressed, with errors that name file, line, field and value."""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from kit.errors import ImportFileError

__all__ = ["Line", "decoded", "read_lines", "read_object", "read_text"]

LARGEST: Final = 2**53
LONGEST_S: Final = 1e9
REMEDY: Final = "restore the file from the original capture"


@dataclass(frozen=True, slots=True)
class Line:
    """One decoded JSON object and where it stands."""

    path: Path
    number: int
    values: Mapping[str, Any]

    def refuse(self, field: str, expected: str) -> NoReturn:
        """ImportFileError for the value of `field`."""
        value = _short(self.values.get(field)) if field in self.values else "missing"
        raise ImportFileError(f"{self.path}:{self.number}: {field}: {value} is not {expected}; {REMEDY}")

    def text(self, field: str) -> str:
        """A string."""
        value = self.values.get(field)
        return value if isinstance(value, str) else self.refuse(field, "text")

    def count(self, field: str) -> int:
        """A whole number from 0."""
        value = self.values.get(field)
        return value if type(value) is int and 0 <= value <= LARGEST else self.refuse(field, "a count")

    def seconds_or_none(self, field: str) -> float | None:
        """Seconds from 0, up to some thirty years; None when the field is absent or null."""
        value = self.values.get(field)
        if value is None:
            return None
        if type(value) not in (int, float) or not 0 <= value <= LONGEST_S:
            self.refuse(field, "a time in seconds")
        return float(value)

    def mapping(self, field: str) -> Mapping[str, Any]:
        """A JSON object."""
        value = self.values.get(field)
        return value if isinstance(value, dict) else self.refuse(field, "an object")

    def integers(self, field: str) -> list[int]:
        """A list of whole numbers."""
        value = self.values.get(field)
        if not isinstance(value, list) or any(type(item) is not int or abs(item) > LARGEST for item in value):
            self.refuse(field, "a list of whole numbers")
        return value


def read_text(path: Path) -> str:
    """The file as text, decompressed when its name ends in .xz."""
    try:
        raw = path.read_bytes()
        return (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode("utf-8")
    except FileNotFoundError:
        raise ImportFileError(f"{path}: missing; a capture needs it: {REMEDY}") from None
    except OSError as error:
        raise ImportFileError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise ImportFileError(f"{path}: damaged ({error}); {REMEDY}") from None


def read_lines(path: Path) -> Iterator[Line]:
    """Every line of a JSON-lines file as an object; an empty or broken line is refused."""
    lines = read_text(path).split("\n")
    if lines[-1] == "":
        lines.pop()
    return decoded(lines, path)


def decoded(lines: Iterable[str], path: Path, *, first: int = 1) -> Iterator[Line]:
    """Lines that have been read, numbered from `first`, as objects."""
    for number, text in enumerate(lines, start=first):
        yield Line(path, number, _decode(text, path, number))


def read_object(path: Path) -> Mapping[str, Any]:
    """A file that holds one JSON object."""
    return _decode(read_text(path), path, 1)


def _decode(text: str, path: Path, number: int) -> Mapping[str, Any]:
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ImportFileError(f"{path}:{number}: not JSON ({error}): {_short(text)}; {REMEDY}") from None
    if not isinstance(value, dict):
        raise ImportFileError(f"{path}:{number}: {_short(value)} is not a JSON object; {REMEDY}")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _no_constant(digits)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
