"""Checks a server command line against the options SGLang declares, before a minute is spent on loading.

Reads arguments as argparse would, with two differences: an abbreviation that argparse would complete is a
problem (a later SGLang may have two options that begin so), and so is a value no option asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import takewhile

from kit.contract.model import Flag, Problem, Values

__all__ = ["check_argv"]

_LEAST = {Values.ONE: 1, Values.SOME: 1}
_MOST = {Values.NONE: 0, Values.ONE: 1, Values.OPTIONAL: 1}


def check_argv(argv: Sequence[str], flags: Mapping[str, Flag], *, version: str) -> Iterator[Problem]:
    """Problems of the arguments after `sglang.launch_server`.

    Args:
        argv: options and values, one string each; `--name=value` is understood.
        flags: every spelling, aliases included, and the option behind it.
        version: SGLang's version, for the messages.
    """
    position = 0
    while position < len(argv):
        name, equals, attached = argv[position].partition("=")
        position += 1
        following = list(takewhile(lambda text: not _is_option(text), argv[position:]))
        position += len(following)
        if not _is_option(name):
            yield Problem(name, name, "is a value that no option asked for")
        elif name not in flags:
            yield _unknown(name, attached or " ".join(following), flags, version)
        else:
            yield from _values(flags[name], name, [attached] if equals else following)
            if equals:
                yield from _stray(following)


def _is_option(text: str) -> bool:
    return text.startswith("-") and not _is_number(text) and text != "-"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unknown(name: str, value: str, flags: Mapping[str, Flag], version: str) -> Problem:
    begins = [spelling for spelling in flags if spelling.startswith(name)]
    if len(begins) == 1:
        return Problem(name, value, "is an abbreviation", begins[0])
    near = get_close_matches(name, flags, n=1) if name.strip("-") else []
    return Problem(name, value, f"SGLang {version} has no such option", near[0] if near else "")


def _values(flag: Flag, name: str, given: list[str]) -> Iterator[Problem]:
    most = _MOST.get(flag.values, len(given))
    if len(given) < _LEAST.get(flag.values, 0):
        yield Problem(name, "", "needs a value", " or ".join(flag.choices or ()))
    for value in given[:most]:
        yield from _value(flag, name, value)
    yield from _stray(given[most:])


def _stray(values: Sequence[str]) -> Iterator[Problem]:
    for value in values:
        yield Problem(value, value, "is a value that no option asked for")


def _value(flag: Flag, name: str, value: str) -> Iterator[Problem]:
    if not flag.parser and not _converts(flag.type, value):
        yield Problem(name, value, f"is not {_element(flag.type)}")
    # A parser may rewrite the text before argparse compares it, so only plain text is compared here.
    elif flag.choices is not None and not flag.parser and value not in flag.choices:
        near = get_close_matches(value, flag.choices, n=1)
        yield Problem(name, value, f"is none of {', '.join(flag.choices)}", near[0] if near else "")


def _element(type_: str) -> str:
    match ast.parse(type_, mode="eval").body:
        case ast.Subscript(value=ast.Name(id="List" | "list"), slice=inner):
            return ast.unparse(inner)
    return type_


def _converts(type_: str, value: str) -> bool:
    match _element(type_):
        case "int":
            return value.lstrip("+-").replace("_", "").isdecimal()
        case "float":
            return _is_number(value)
    return True
