"""The server's command-line flags, read from SGLang's declarations.

SGLang declares a flag as an annotated field, `name: A[type, Arg(...)] = default`, of `ServerArgs` (up to
0.5.15) or of the classes listed in `_INPUT_NAMESPACES` (from 0.5.21), and registers a handful by hand in
`ServerArgs.add_cli_args`. The rules that turn an annotation into an option are those of SGLang's
`arg_groups/arg_utils.py:add_cli_args_from_dataclass`; its digest is one of the reviewed ones.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kit.contract.literals import NotLiteral, Scope, assignments
from kit.contract.source import Module, Sources
from kit.errors import ImportFileError

__all__ = ["Entry", "flags", "server_fields"]

_SERVER_ARGS = "srt/server_args.py"

# How many values follow an option: argparse's nargs, in words.
_ARITY = {None: "one", "+": "some", "*": "any", "?": "optional"}

_SWITCHES = frozenset({"'store_true'", "DeprecatedAction", "DeprecatedStoreTrueAction", "DeprecatedStoreConstAction"})

Entry = dict[str, object]


@dataclass(frozen=True, slots=True)
class _Field:
    """One annotated field: its type, the keywords of its `Arg` (None: not a flag), its default."""

    name: str
    type: ast.expr
    arg: dict[str, ast.expr] | None
    default: ast.expr | None
    scope: Scope


def flags(sources: Sources) -> dict[str, Entry]:
    """Every option by its primary spelling.

    An entry has `field`, `type`, `default`, `values` (`none`, `one`, `some`, `any` or `optional`) and, where
    they apply, `aliases`, `choices`, `parser` (the function SGLang converts the text with) and `replacement`
    (the option to use instead of a deprecated one). A default or a choice that only running code can tell is
    given as text under `default_from` or `choices_from`.
    """
    module = sources.module(_SERVER_ARGS)
    fields = {field.name: field for field in _fields(sources, module)}
    declared = {
        _spelling(field): _declared(field)
        for field in fields.values()
        if field.arg is not None and "no_cli" not in field.arg
    }
    return declared | dict(_registered(sources, module, fields))


def server_fields(sources: Sources) -> list[str]:
    """Every server argument, with or without an option; `/server_info` reports them all."""
    return sorted(field.name for field in _fields(sources, sources.module(_SERVER_ARGS)))


def _fields(sources: Sources, module: Module) -> Iterator[_Field]:
    for scope, owner in _owners(sources, module):
        for statement in owner.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                type_, arg = _annotation(statement.annotation)
                yield _Field(statement.target.id, type_, arg, statement.value, scope)


def _owners(sources: Sources, module: Module) -> Iterator[tuple[Scope, ast.ClassDef]]:
    yield Scope(sources, module), _server_args(module)
    namespaces = assignments(module.tree.body).get("_INPUT_NAMESPACES")
    for name in namespaces.elts if isinstance(namespaces, ast.List) else ():
        scope = Scope(sources, Scope(sources, module).module_of(ast.unparse(name)))
        owner = scope.module.class_(ast.unparse(name))
        if owner is not None:
            yield scope, owner


def _server_args(module: Module) -> ast.ClassDef:
    owner = module.class_("ServerArgs")
    if owner is None:
        raise ImportFileError(f"sglang/{module.path} has no class ServerArgs; its flags cannot be read")
    return owner


def _annotation(node: ast.expr) -> tuple[ast.expr, dict[str, ast.expr] | None]:
    """Split `A[T, "help"]` or `A[T, Arg(...)]`; a plain annotation declares no flag."""
    match node:
        case ast.Subscript(value=ast.Name(id="A"), slice=ast.Tuple(elts=[type_, ast.Constant() | ast.JoinedStr()])):
            return type_, {}
        case ast.Subscript(value=ast.Name(id="A"), slice=ast.Tuple(elts=[type_, ast.Call(keywords=keywords)])):
            return type_, {keyword.arg: keyword.value for keyword in keywords if keyword.arg is not None}
    return node, None


def _spelling(field: _Field) -> str:
    given = (field.arg or {}).get("cli_name")
    return f"--{field.name.replace('_', '-')}" if given is None else str(ast.literal_eval(given))


def _declared(field: _Field) -> Entry:
    arg = field.arg or {}
    inner = _without_optional(field.type)
    entry: Entry = {"field": field.name, "type": ast.unparse(inner), "values": _values(inner, arg)}
    entry |= {"required": True} if field.default is None else _stated("default", field.default, field.scope)
    if aliases := _aliases(_spelling(field), arg):
        entry["aliases"] = aliases
    if "type_parser" in arg:
        entry["parser"] = ast.unparse(arg["type_parser"])
    match inner:
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices) if "choices" not in arg:
            # Literal["one"] holds a value, Literal["one", "two"] a tuple of them.
            several = choices if isinstance(choices, ast.Tuple) else ast.Tuple([choices])
            return entry | _stated("choices", several, field.scope)
    return entry | (_stated("choices", arg["choices"], field.scope) if "choices" in arg else {})


def _aliases(spelling: str, arg: dict[str, ast.expr]) -> list[str]:
    names = list(ast.literal_eval(arg["aliases"])) if "aliases" in arg else []
    if _is_optional_boolean(arg):
        names += [f"--no-{name.removeprefix('--')}" for name in (spelling, *names)]
    return names


def _is_optional_boolean(arg: dict[str, ast.expr]) -> bool:
    return "action" in arg and ast.unparse(arg["action"]) == "argparse.BooleanOptionalAction"


def _values(inner: ast.expr, arg: dict[str, ast.expr]) -> str:
    if _is_optional_boolean(arg) or ("action" not in arg and ast.unparse(inner) == "bool"):
        return "none"
    nargs = ast.literal_eval(arg["nargs"]) if "nargs" in arg else None
    match arg.get("action_kwargs"):
        case ast.Dict(keys=keys, values=values):
            extra = {ast.unparse(key): value for key, value in zip(keys, values, strict=True) if key is not None}
            nargs = ast.literal_eval(extra["'nargs'"]) if "'nargs'" in extra else nargs
    if nargs is None and _head(inner) in {"List", "list"} and "type_parser" not in arg:
        return "some"
    return _ARITY[nargs]


def _head(node: ast.expr) -> str:
    return ast.unparse(node.value) if isinstance(node, ast.Subscript) else ""


def _without_optional(node: ast.expr) -> ast.expr:
    match node:
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return inner
        case ast.BinOp(left=inner, op=ast.BitOr(), right=ast.Constant(value=None)):
            return inner
    return node


def _stated(key: str, node: ast.expr, scope: Scope) -> Entry:
    """`{key: value}`, or `{key_from: text}` when the source does not state the value."""
    try:
        return {key: scope.value(node)}
    except NotLiteral:
        return {f"{key}_from": ast.unparse(node)}


def _registered(sources: Sources, module: Module, fields: dict[str, _Field]) -> Iterator[tuple[str, Entry]]:
    """Options that `add_cli_args` registers by hand: computed choices, and deprecated spellings."""
    for method in _server_args(module).body:
        if isinstance(method, ast.FunctionDef) and method.name == "add_cli_args":
            scope = Scope(sources, module, assignments(method.body))
            for statement in method.body:
                match statement:
                    case ast.Expr(value=ast.Call(func=ast.Attribute(attr="add_argument")) as call):
                        yield _registration(call, scope, fields)


def _registration(call: ast.Call, scope: Scope, fields: dict[str, _Field]) -> tuple[str, Entry]:
    names = [str(ast.literal_eval(name)) for name in call.args]
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    action = ast.unparse(given["action"]) if "action" in given else ""
    switch = action in _SWITCHES and "nargs" not in given
    field = str(ast.literal_eval(given["dest"])) if "dest" in given else names[0].lstrip("-").replace("-", "_")
    entry: Entry = {
        "field": field,
        "type": "bool" if switch else ast.unparse(given.get("type", ast.Name("str"))),
        "values": "none" if switch else _ARITY[ast.literal_eval(given.get("nargs", ast.Constant(None)))],
    }
    declared = fields.get(field)
    if declared is not None and declared.default is not None:
        entry |= _stated("default", declared.default, declared.scope)
    if names[1:]:
        entry["aliases"] = names[1:]
    if "new_flag" in given:
        entry["replacement"] = ast.literal_eval(given["new_flag"])
    return names[0], entry | (_stated("choices", given["choices"], scope) if "choices" in given else {})
