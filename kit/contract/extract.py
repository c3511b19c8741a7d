"""From SGLang's source to one contract document: what it accepts, answers, offers and can be hooked at.

The document is plain JSON data: deterministic, sorted, without dates or paths of this machine. What the
source states literally is read from it; what follows from its logic comes from the reviewed table, which
refuses a source that nobody has read.
"""

from __future__ import annotations

import ast
import hashlib
import json
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from kit.contract.flags import Entry, flags, server_fields
from kit.contract.literals import NotLiteral, Scope, assignments
from kit.contract.reviewed import reviewed
from kit.contract.source import Function, Module, Sources
from kit.errors import ImportFileError

__all__ = ["SCHEMA_VERSION", "dump", "extract"]

# 1: first version.
SCHEMA_VERSION = 1

_REQUEST = "srt/managers/io_struct.py", "GenerateReqInput"
_SAMPLING = "srt/sampling/sampling_params.py", "SamplingParams"
_HTTP = "srt/entrypoints/http_server.py"
_LADDER = "srt/speculative/adaptive_spec_params.py", "DEFAULT_ADAPTIVE_CONFIG"
_PLUGIN_GROUP = "srt/plugins/__init__.py", "GENERAL_PLUGINS_GROUP"
_RESERVED_RID = "srt/constants.py", "HEALTH_CHECK_RID_PREFIX"

# Methods the trace patch attaches to or reads the results of; None stands for every method of the class.
_HOOKS: tuple[tuple[str, str, frozenset[str] | None], ...] = (
    (
        "srt/managers/scheduler.py",
        "Scheduler",
        frozenset(
            {
                "event_loop_normal",
                "event_loop_overlap",
                "flush_cache",
                "get_init_info",
                "get_internal_state",
                "is_fully_idle",
                "on_idle",
                "process_batch_result",
                "run_batch",
                "run_event_loop",
            }
        ),
    ),
    (
        "srt/managers/scheduler_components/batch_result_processor.py",
        "SchedulerBatchResultProcessor",
        frozenset(
            {
                "_resolve_spec_v2_tokens",
                "process_batch_result_decode",
                "process_batch_result_idle",
                "process_batch_result_prefill",
            }
        ),
    ),
    ("srt/managers/schedule_batch.py", "ScheduleBatch", frozenset({"copy"})),
    ("srt/managers/schedule_batch.py", "Req", frozenset({"finished"})),
    ("srt/speculative/adaptive_runtime_state.py", "AdaptiveController", None),
)

_HTTP_METHODS = frozenset({"get", "post", "put", "delete", "head", "patch"})


def extract(path: Path) -> dict[str, object]:
    """The contract of the SGLang at `path`: a wheel, an unpacked wheel or an installed package folder.

    Raises:
        ImportFileError: nothing usable is there, or a reviewed function has changed since it was read.
    """
    sources = Sources(path)
    sampling = _fields(sources, *_SAMPLING)
    internal = _internal_names(sources.module(_SAMPLING[0]))
    document: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "sglang": sources.version(),
        "request": _fields(sources, *_REQUEST),
        "sampling": {name: entry for name, entry in sampling.items() if name not in internal},
        "sampling_internal": {name: entry for name, entry in sampling.items() if name in internal},
        "flags": flags(sources),
        "server_fields": server_fields(sources),
        "endpoints": _endpoints(sources),
        "plugin_group": _constant(sources, *_PLUGIN_GROUP),
        "reserved_rid_prefix": _constant(sources, *_RESERVED_RID),
        "adaptive_ladder": _constant(sources, *_LADDER),
        "hooks": {f.target: {"signature": f.signature, "sha256": f.sha256} for f in _hooks(sources)},
        "reviewed": reviewed(sources),
    }
    digests = sources.digests()
    return document | {"sources": digests, "sources_sha256": hashlib.sha256(dump(digests).encode()).hexdigest()}


def dump(document: dict[str, object] | dict[str, str]) -> str:
    """The document as text: keys sorted, one line for each entry of a section, newline at the end."""
    lines = [f"  {json.dumps(key)}: {_section(document[key])}" for key in sorted(document)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _section(value: object) -> str:
    if not isinstance(value, dict) or not value:
        return json.dumps(value, sort_keys=True)
    rows = [f"    {json.dumps(key)}: {json.dumps(value[key], sort_keys=True)}" for key in sorted(value)]
    return "{\n" + ",\n".join(rows) + "\n  }"


def _fields(sources: Sources, path: str, class_name: str) -> dict[str, Entry]:
    """Annotated fields of a class: type as written and default, the latter as text when not literal."""
    module = sources.module(path)
    owner = module.class_(class_name)
    if owner is None:
        raise ImportFileError(f"sglang/{path} has no class {class_name}; its fields cannot be read")
    scope = Scope(sources, module)
    return {
        statement.target.id: {"type": ast.unparse(statement.annotation)} | _default(statement.value, scope)
        for statement in owner.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def _default(node: ast.expr | None, scope: Scope) -> Entry:
    match node:
        case None:
            return {}
        case ast.Call(func=ast.Name(id="field"), keywords=keywords):
            stated = {keyword.arg: keyword.value for keyword in keywords}
            return _default(stated.get("default"), scope)
    try:
        return {"default": scope.value(node)}
    except NotLiteral:
        return {"default_from": ast.unparse(node)}


def _internal_names(module: Module) -> frozenset[str]:
    """Fields of SamplingParams under its own heading for internal ones, which clients must not send."""
    headings = [
        token.start[0]
        for token in tokenize.generate_tokens(StringIO(module.text).readline)
        if token.type == tokenize.COMMENT and "Internal fields" in token.string
    ]
    owner = module.class_(_SAMPLING[1])
    if len(headings) != 1 or owner is None:
        raise ImportFileError(
            f"sglang/{module.path} no longer marks its internal fields; read it and say which they are"
        )
    return frozenset(
        statement.target.id
        for statement in owner.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and statement.lineno > headings[0]
    )


def _constant(sources: Sources, path: str, name: str) -> object:
    module = sources.module(path)
    bound = assignments(module.tree.body)
    if name not in bound:
        raise ImportFileError(f"sglang/{path} no longer assigns {name}; find where it went")
    return Scope(sources, module).value(bound[name])


def _hooks(sources: Sources) -> Iterator[Function]:
    for path, class_name, names in _HOOKS:
        for function in sources.module(path).functions(class_name):
            if names is None or function.qualified_name.rpartition(".")[2] in names:
                yield function


def _endpoints(sources: Sources) -> dict[str, list[str]]:
    """Paths that the HTTP server always serves, with their methods; routes behind a condition are left out."""
    http = sources.module(_HTTP)
    found: dict[str, set[str]] = {}
    for module in (http, *_routers(sources, http)):
        for node in module.tree.body:
            for path, methods in _routes(node):
                found.setdefault(path, set()).update(methods)
    return {path: sorted(methods) for path, methods in found.items()}


def _routers(sources: Sources, http: Module) -> Iterator[Module]:
    scope = Scope(sources, http)
    for node in http.tree.body:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="include_router"), args=[ast.Name(id=name), *_])):
                yield scope.module_of(name)


def _routes(node: ast.stmt) -> Iterator[tuple[str, list[str]]]:
    for decorator in node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ():
        match decorator:
            case ast.Call(
                func=ast.Attribute(attr="api_route"), args=[ast.Constant(value=str(path)), *_], keywords=keywords
            ):
                methods = {keyword.arg: keyword.value for keyword in keywords}["methods"]
                yield path, list(ast.literal_eval(methods))
            case ast.Call(func=ast.Attribute(attr=method), args=[ast.Constant(value=str(path)), *_]) if (
                method in _HTTP_METHODS
            ):
                yield path, [method.upper()]
