"""The command line: every flag of an SGLang version as its contract lists them, and a few of our own."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

from kit.contract import Contract, Flag, Values
from kit.standin.dialect import DEFAULT_VERSION
from kit.standin.faults import known_faults

__all__ = ["asked_version", "parse_arguments"]

_NARGS = {Values.OPTIONAL: "?", Values.SOME: "+", Values.ANY: "*"}
_READERS: dict[str, Callable[[str], Any]] = {"int": int, "List[int]": int, "float": float, "List[float]": float}
_SUFFIXES = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20}


def parse_arguments(argv: Sequence[str], *, contract: Contract) -> argparse.Namespace:
    """The command line as a namespace of SGLang's server arguments, plus `world`, `launch_seed`, `version`, `fault`.

    Exits with status 2 on a flag or value that SGLang's own parser refuses.
    """
    parser = argparse.ArgumentParser(
        prog="python -m kit.standin",
        description="Stand-in for an SGLang server.",
        epilog="faults (--fault NAME[=VALUE]):\n"
        + "\n".join(f"  {name:<22} {about}" for name, about in known_faults()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--world", required=True, help="preset or YAML file")
    parser.add_argument("--launch-seed", type=int, default=0, help="seed of the noise of this launch")
    parser.add_argument("--version", default=DEFAULT_VERSION, help="version of SGLang to imitate")
    parser.add_argument("--fault", action="append", default=[], help="what to get wrong, listed below; may be repeated")
    for flag in {flag.name: flag for flag in contract.flags.values()}.values():
        _add(parser, flag)
    # A field with two flags keeps the default of the one that is not deprecated.
    current = {flag.field: flag.default for flag in contract.flags.values() if not flag.replacement}
    parser.set_defaults(**current)
    return parser.parse_args(argv)


def asked_version(argv: Sequence[str]) -> str:
    """The version to imitate, which decides what other flags there are."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--version", default=DEFAULT_VERSION)
    version: str = parser.parse_known_args(argv)[0].version
    return version


def _add(parser: argparse.ArgumentParser, flag: Flag) -> None:
    options: dict[str, Any] = {"dest": flag.field, "default": flag.default}
    if flag.values is Values.NONE:
        parser.add_argument(flag.name, *flag.aliases, action="store_true", **options)
        return
    reader = _reader(flag)
    if flag.choices is not None:
        options["choices"] = [reader(choice) for choice in flag.choices]
    if flag.values in _NARGS:
        options["nargs"] = _NARGS[flag.values]
    parser.add_argument(flag.name, *flag.aliases, type=reader, required=flag.required, **options)


def _reader(flag: Flag) -> Callable[[str], Any]:
    if flag.parser == "human_readable_int":
        return _human_readable_int
    if flag.parser in ("json.loads", "json_list_type"):
        return json.loads
    return _READERS.get(flag.type, str)


def _human_readable_int(text: str) -> int:
    """`4096`, `4k` (thousands) or `4K` (binary)."""
    if text[-1:] in _SUFFIXES:
        return int(float(text[:-1]) * _SUFFIXES[text[-1]])
    return int(text)
