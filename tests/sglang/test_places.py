"""What servers say, without the places of the host."""

from __future__ import annotations

from typing import Any

import pytest

from kit.records import Launch, LaunchStatus, Role
from kit.sglang import without_places
from tests.specs import make_spec


def launch(**fields: Any) -> Launch:
    plain: dict[str, Any] = {"started_utc": "", "status": LaunchStatus.COMPLETED, "command": ()}
    return Launch(0, 0, 0, "baseline", Role.MEASURE, **plain | fields)


def cut(log: str, **models: Any) -> str:
    return without_places(launch(log=log), make_spec(models=models)).log


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (
            'File "/home/me/venv/lib/python3.12/site-packages/sglang/srt/server_args.py", line 7',
            'File "…/sglang/srt/server_args.py", line 7',
        ),
        ('File "/usr/lib/python3.12/json/decoder.py", line 1', 'File "…/json/decoder.py", line 1'),
        ("model_path='/data/models/llama', port=1", "model_path='…/llama', port=1"),
        ("GET /v1/loads and http://127.0.0.1:8000/tmp/x", "GET /v1/loads and http://127.0.0.1:8000/tmp/x"),
        ("tokens/s 3/4 and a/home/b", "tokens/s 3/4 and a/home/b"),
    ],
)
def test_a_path_keeps_what_it_says(said: str, left: str) -> None:
    assert cut(said) == left
    assert cut(left) == left


def test_models_keep_the_name_that_the_spec_gives_them() -> None:
    known = {"target": {"path": "kit:smollm2-135m", "dtype": "bfloat16"}}
    assert cut("load /home/me/.cache/speckit/smollm2-135m done", **known) == "load kit:smollm2-135m done"
    own = {"target": {"path": "/data/models/llama", "dtype": "bfloat16"}}
    assert cut("load /data/models/llama/config.json done", **own) == "load /data/models/llama/config.json done"


def test_command_answer_and_failure_are_cut_too() -> None:
    shown = without_places(
        launch(
            command=("/opt/venv/bin/python", "-m", "sglang.launch_server"),
            server_info={"internal_states": [{"trace": "/tmp/a/b"}], "port": 1},
            failure="no /tmp/a/log",
        ),
        make_spec(),
    )
    assert shown.command[0] == "…/python"
    assert shown.server_info == {"internal_states": [{"trace": "…/b"}], "port": 1}
    assert shown.failure == "no …/log"
