from __future__ import annotations

import pytest

from kit.contract.flags import flags, server_fields
from kit.errors import ImportFileError
from tests.contract.conftest import Package

ONE_CLASS = """
BACKENDS = ["triton", "fa3"]
class ServerArgs:
    model_path: A[str, Arg(help="x", aliases=["--model"])]
    port: A[int, "The port."] = 30000
    verbose: A[bool, f"Say {more}."] = False
    strict: A[bool, Arg(action=argparse.BooleanOptionalAction)] = True
    attention_backend: A[Optional[str], Arg(choices=BACKENDS, resolvable=True)] = None
    mode: A[Literal["auto", "slow"], "m"] = "auto"
    only: A[Literal["one"], "m"] = "one"
    sizes: A[Optional[List[int]], "s"] = None
    names: A[List[str], Arg(nargs="*")] = dataclasses.field(default_factory=list)
    labels: A[Optional[Dict[str, str]], Arg(type_parser=json.loads)] = None
    ports: A[Optional[List[int]], Arg(type_parser=json_list_type)] = None
    checksum: A[int | None, Arg(nargs="?", const="", cli_name="--sum")] = None
    lora_paths: A[Optional[List[str]], Arg(action=LoRAPathAction, action_kwargs={"type": str, "nargs": "*"})] = None
    hidden: A[bool, Arg(no_cli=True)] = False
    handler: Optional[Callable] = None
    parser_name: Optional[str] = "none"

    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        choices = list(Registry.names())
        parser.add_argument("--parser-name", "-P", type=str, choices=["auto"] + choices, default=ServerArgs.parser_name)
        parser.add_argument("--old-port", type=int, dest="port", action=DeprecatedAliasStoreAction, new_flag="--port")
        parser.add_argument("--off", action=DeprecatedStoreConstAction, dest="mode", const_value="slow")
        parser.add_argument("--pick", action=DeprecatedStoreConstAction, nargs=None, choices=["amd"])
        parser.add_argument("--fuse", action="store_true")
        parser.add_argument("--config", type=str)
"""


def read(package: Package, text: str) -> dict[str, dict[str, object]]:
    return flags(package({"srt/server_args.py": text}))


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        (
            "--model-path",
            {"field": "model_path", "type": "str", "values": "one", "required": True, "aliases": ["--model"]},
        ),
        ("--port", {"field": "port", "type": "int", "values": "one", "default": 30000}),
        ("--verbose", {"field": "verbose", "type": "bool", "values": "none", "default": False}),
        (
            "--strict",
            {"field": "strict", "type": "bool", "values": "none", "default": True, "aliases": ["--no-strict"]},
        ),
        (
            "--attention-backend",
            {
                "field": "attention_backend",
                "type": "str",
                "values": "one",
                "default": None,
                "choices": ["triton", "fa3"],
            },
        ),
        ("--sizes", {"field": "sizes", "type": "List[int]", "values": "some", "default": None}),
        ("--names", {"field": "names", "type": "List[str]", "values": "any", "default": []}),
        ("--sum", {"field": "checksum", "type": "int", "values": "optional", "default": None}),
        ("--lora-paths", {"field": "lora_paths", "type": "List[str]", "values": "any", "default": None}),
        (
            "--labels",
            {"field": "labels", "type": "Dict[str, str]", "values": "one", "default": None, "parser": "json.loads"},
        ),
        (
            "--ports",
            {"field": "ports", "type": "List[int]", "values": "one", "default": None, "parser": "json_list_type"},
        ),
        (
            "--parser-name",
            {
                "field": "parser_name",
                "type": "str",
                "values": "one",
                "default": "none",
                "aliases": ["-P"],
                "choices_from": "['auto'] + choices",
            },
        ),
        ("--old-port", {"field": "port", "type": "int", "values": "one", "default": 30000, "replacement": "--port"}),
        ("--off", {"field": "mode", "type": "bool", "values": "none", "default": "auto"}),
        ("--pick", {"field": "pick", "type": "str", "values": "one", "choices": ["amd"]}),
        ("--fuse", {"field": "fuse", "type": "bool", "values": "none"}),
        ("--config", {"field": "config", "type": "str", "values": "one"}),
    ],
)
def test_an_option_is_read_as_sglang_would_register_it(package: Package, name: str, entry: dict[str, object]) -> None:
    assert read(package, ONE_CLASS)[name] == entry


def test_literal_types_are_choices(package: Package) -> None:
    found = read(package, ONE_CLASS)
    assert found["--mode"]["choices"] == ["auto", "slow"]
    assert found["--only"]["choices"] == ["one"]


def test_fields_without_a_command_line_are_no_options_but_server_fields(package: Package) -> None:
    sources = package({"srt/server_args.py": ONE_CLASS})
    assert {"--hidden", "--handler"}.isdisjoint(flags(sources))
    assert {"hidden", "handler", "parser_name"} <= set(server_fields(sources))


def test_options_spread_over_namespace_classes_are_collected(package: Package) -> None:
    sources = package(
        {
            "srt/server_args.py": "from sglang.srt.fields.spec import Spec\n"
            "class ServerArgs:\n    pass\n"
            "_INPUT_NAMESPACES = [Spec]\n",
            "srt/fields/spec.py": "from sglang.srt.choices import FORMATS\n"
            "class Spec:\n"
            "    _NS_PATH = 'spec'\n"
            "    draft_format: A[Optional[str], Arg(choices=FORMATS)] = None\n"
            "    derived = Derived(fn='x')\n",
            "srt/choices.py": "FORMATS = ['auto']\n",
        }
    )
    assert flags(sources) == {
        "--draft-format": {
            "field": "draft_format",
            "type": "str",
            "values": "one",
            "default": None,
            "choices": ["auto"],
        }
    }


def test_a_file_without_the_class_is_refused(package: Package) -> None:
    with pytest.raises(ImportFileError, match="no class ServerArgs"):
        read(package, "class Other: pass\n")
