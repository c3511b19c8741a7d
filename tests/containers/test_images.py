"""What both images hold, say about themselves and leave out."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from typing import Any

import pytest

from kit import __version__
from kit.models import CATALOGUE
from tests.containers.engine import BASE, ROOT, Engine

pytestmark = pytest.mark.docker

LOCK = tomllib.loads((ROOT / "docker" / "images.lock.toml").read_text())
each_variant = pytest.mark.parametrize("variant", ["triton", "flashinfer"])


def inspected(host: Engine, image: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(host.docker("image", "inspect", image).stdout)[0]
    return found


def inside(host: Engine, variant: str, program: str, *words: str) -> str:
    return host.docker("run", "--rm", "--entrypoint", program, f"speckit:{variant}", *words).stdout


@each_variant
def test_labels_say_what_was_built_from_what(host: Engine, variant: str) -> None:
    labels = inspected(host, f"speckit:{variant}")["Config"]["Labels"]
    head = subprocess.run(("git", "rev-parse", "HEAD"), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert labels["org.opencontainers.image.revision"].removesuffix("-modified") == head.strip()
    assert labels["org.opencontainers.image.base.name"] == BASE
    assert labels["org.opencontainers.image.base.digest"] == inspected(host, BASE)["Id"]
    assert labels["org.opencontainers.image.version"] == __version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", labels["org.opencontainers.image.created"])
    assert (labels["org.speckit.variant"], labels["org.speckit.sglang"]) == (variant, "0.5.15.post1")


def test_the_default_variant_is_what_the_bare_name_means(host: Engine) -> None:
    assert inspected(host, "speckit")["Id"] == inspected(host, "speckit:triton")["Id"]


@each_variant
def test_the_command_is_speckit_and_health_is_asked_in_json_form(host: Engine, variant: str) -> None:
    config = inspected(host, f"speckit:{variant}")["Config"]
    assert config["Entrypoint"] == ["speckit"]
    assert config["Healthcheck"]["Test"][0] == "CMD"
    assert config["Env"].count("HOME=/tmp") == 1


@each_variant
def test_the_build_proved_the_trace_patch_against_the_sglang_in_it(host: Engine, variant: str) -> None:
    facts = json.loads(inside(host, variant, "cat", "/opt/speckit/image.json"))
    assert (facts["variant"], facts["standin_base"]) == (variant, True)
    assert facts["versions"]["sglang"] == facts["trace"]["reviewed_as"] == "0.5.15.post1"
    assert facts["trace"]["version"] == "1.0.0"


def test_flashinfer_is_put_into_its_own_variant_alone_in_the_pinned_version(host: Engine) -> None:
    found = {}
    for variant in ("triton", "flashinfer"):
        versions = json.loads(inside(host, variant, "cat", "/opt/speckit/image.json"))["versions"]
        found[variant] = versions["flashinfer-python"]
    assert found == {"triton": None, "flashinfer": LOCK["variants"]["flashinfer"]["flashinfer-python"]}


def test_a_second_version_of_flashinfer_stops_the_build(host: Engine) -> None:
    other = "/usr/lib/python3/dist-packages/flashinfer_cubin-0.6.11.dist-info"
    metadata = r"Metadata-Version: 2.1\nName: flashinfer-cubin\nVersion: 0.6.11\n"
    program = f"mkdir {other}; printf '{metadata}' >{other}/METADATA; "
    check = "python3 /opt/speckit/build/check_image.py flashinfer /tmp/facts"
    done = host.docker("run", "--rm", "--entrypoint", "sh", "speckit:flashinfer", "-c", program + check, check=False)
    assert done.returncode == 1
    assert "flashinfer-cubin is 0.6.11 in the base image and pinned to 0.6.12" in done.stderr


def test_kit_and_engine_do_not_share_packages(host: Engine) -> None:
    listed = "import importlib.metadata as m; print(*sorted(d.name for d in m.distributions()))"
    engine = inside(host, "triton", "python3", "-c", listed).split()
    kit = inside(host, "triton", "/opt/speckit/venv/bin/python", "-c", listed).split()
    assert {"sglang", "speckit-trace"} <= set(engine)
    assert not {"duckdb", "speckit"} & set(engine)
    assert {"duckdb", "speckit"} <= set(kit)
    assert not {"sglang", "pip"} & set(kit)


def test_the_kit_holds_exactly_what_its_lock_names(host: Engine) -> None:
    listed = "import importlib.metadata as m; print(*sorted(f'{d.name}=={d.version}' for d in m.distributions()))"
    found = inside(host, "triton", "/opt/speckit/venv/bin/python", "-c", listed).lower().replace("_", "-").split()
    locked = re.findall(r"^([a-z0-9-]+==[^ \\]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert set(found) - {f"speckit=={__version__}"} <= set(locked)


def test_the_small_pair_lies_inside_and_is_the_one_of_the_catalogue(host: Engine) -> None:
    files = [f"/opt/speckit/models/{model.name}/{file}" for model in CATALOGUE.values() for file in model.files]
    sums = dict(line.split()[::-1] for line in inside(host, "triton", "sha256sum", *files).splitlines())
    expected = {
        f"/opt/speckit/models/{m.name}/{file}": sha for m in CATALOGUE.values() for file, sha in m.files.items()
    }
    assert sums == expected


@each_variant
def test_the_default_spec_is_for_the_variant(host: Engine, variant: str) -> None:
    text = host.docker("run", "--rm", f"speckit:{variant}", "check", f"specs/image_{variant}.yaml").stdout
    assert text.startswith(f"specs/image_{variant}.yaml: ok: 3 arms")


def test_nothing_of_the_working_copy_but_what_is_needed_gets_in(host: Engine) -> None:
    found = inside(host, "triton", "sh", "-c", "ls -A /opt/speckit; find / -xdev -name .git")
    assert set(found.split()) == {"build", "image.json", "models", "specs", "trace", "venv"}
    history = host.docker("history", "--no-trunc", "speckit:triton").stdout
    assert not re.search(r"(?i)(hf_token|password|secret|api_key)", history)


def test_a_base_with_another_sglang_stops_the_build(host: Engine) -> None:
    program = 'sed -i "s/^Version: .*/Version: 0.5.14/" /usr/lib/python3/dist-packages/sglang-*.dist-info/METADATA; '
    check = "python3 /opt/speckit/build/check_image.py triton /tmp/facts"
    done = host.docker("run", "--rm", "--entrypoint", "sh", "speckit:triton", "-c", program + check, check=False)
    assert done.returncode == 1
    assert "sglang is 0.5.14 in the base image and pinned to 0.5.15.post1" in done.stderr


def test_a_changed_line_in_a_hooked_function_stops_the_build(host: Engine) -> None:
    module = "/usr/lib/python3/dist-packages/sglang/srt/managers/scheduler.py"
    program = f'sed -i "s/    def run_batch(/    def run_batch(  # changed/" {module}; '
    check = "python3 /opt/speckit/build/check_image.py triton /tmp/facts"
    done = host.docker("run", "--rm", "--entrypoint", "sh", "speckit:triton", "-c", program + check, check=False)
    assert done.returncode == 1
    assert "not the reviewed text of SGLang 0.5.15.post1: sglang.srt.managers.scheduler.Scheduler" in done.stderr
