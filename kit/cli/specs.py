"""Commands that read a spec and start nothing: check, plan, schema."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from kit.cli.options import json_option, print_json, selected, selection_options, spec_argument
from kit.errors import SpecError
from kit.pipeline import Preview, preview
from kit.plan import PlannedCell
from kit.report import metrics_page
from kit.spec import SCHEMA_FILE, schema_text

__all__ = ["check", "plan", "schema"]


@click.command()
@spec_argument
@json_option
def check(spec: Path, as_json: bool) -> None:
    """Validate SPEC, its prompts, and the flags and requests it leads to.

    \b
    speckit check specs/a6000_triton.yaml
    """
    view = preview(spec)
    facts = {
        "schema_version": 1,
        "spec": view.spec.name,
        "spec_hash": view.spec_hash,
        "workload_hash": view.prompts.sha256,
        "arms": [arm.name for arm in view.spec.arms],
        "launches": len(view.plan.launches),
        "prompts": len(view.prompts.prompts),
        "sglang": view.spec.engine.sglang,
    }
    if as_json:
        print_json(facts)
    else:
        click.echo(
            f"{spec}: ok: {len(view.spec.arms)} arms, {facts['launches']} launches, {facts['prompts']} prompts, "
            f"checked against SGLang {view.spec.engine.sglang}, hash {view.spec_hash[:12]}"
        )


@click.command()
@spec_argument
@selection_options
@json_option
def plan(
    spec: Path, arms: tuple[str, ...] | None, levels: tuple[int, ...] | None, blocks: int | None, as_json: bool
) -> None:
    """Print the order of launches and cells, the server command lines and the estimated time of SPEC.

    \b
    speckit plan specs/a6000_triton.yaml --arms baseline,k3 --levels 1,32
    """
    view = preview(spec, selected(arms, levels, blocks))
    if as_json:
        print_json(_as_data(view))
    else:
        click.echo("\n".join(_as_text(view)))


def _as_data(view: Preview) -> dict[str, object]:
    return {
        "schema_version": 1,
        "spec": view.spec.name,
        "spec_hash": view.spec_hash,
        "declarations": list(view.plan.declarations),
        "launches": [asdict(launch) for launch in view.plan.launches],
        "commands": {arm: list(flags) for arm, flags in view.commands.items()},
        "estimated_minutes": view.estimate_s / 60,
        "assumed": asdict(view.timing),
        "blocks_needed": [asdict(row) for row in view.power],
    }


def _as_text(view: Preview) -> Iterator[str]:
    yield f"{view.spec.name}: {view.spec.title}"
    yield from view.plan.declarations
    yield ""
    yield f"{'launch':>6}  {'block':>5}  {'arm':<20} {'role':<10} concurrency (requests), in order"
    for number, launch in enumerate(view.plan.launches):
        cells = ", ".join(f"{_load(cell)} ({cell.requests})" for cell in launch.cells)
        yield f"{number:>6}  {launch.block + 1:>5}  {launch.arm:<20} {launch.role:<10} {cells}"
    yield ""
    for arm in dict.fromkeys(launch.arm for launch in view.plan.launches):
        yield f"{arm}: {shlex.join(view.commands[arm])}"
    yield ""
    yield from _power(view)
    yield (
        f"estimated {_duration(view.estimate_s)}, if a server starts in {view.timing.startup_s:g} s and an iteration "
        f"takes {view.timing.iteration_s * 1000:g} ms without speculation; registered hash {view.spec_hash[:12]}"
    )


def _power(view: Preview) -> Iterator[str]:
    """How many blocks a difference needs, which depends on noise that nobody knows before the first two launches."""
    yield (
        f"blocks that find a true ratio beyond {view.spec.decision.noise_threshold:.0%} in four runs of five (one "
        f"comparison, one-sided 5 %; this plan has {len({launch.block for launch in view.plan.launches})}):"
    )
    yield f"{'launches differ by (sd)':>24}" + "".join(f"{ratio:>8}x" for ratio in view.power[0].blocks)
    for row in view.power:
        needed = "".join(f"{'>1000' if blocks is None else blocks:>9}" for blocks in row.blocks.values())
        yield f"{row.launch_sd:>24.0%}{needed}"
    yield ""


def _load(cell: PlannedCell) -> str:
    return str(cell.concurrency) if cell.per_second is None else f"{cell.per_second:g}/s"


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 5400 else f"{seconds / 60:.1f} minutes"


@click.command()
@click.option("--check", "only_check", is_flag=True, help="Exit 2 when a written file is out of date.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("."), help="Root of the project.")
def schema(only_check: bool, out: Path) -> None:
    """Write the generated files: the JSON Schema of a spec and the page of metrics.

    \b
    speckit schema --check
    """
    generated = {Path("specs/schema") / SCHEMA_FILE: schema_text(), Path("docs/metrics.md"): metrics_page()}
    for name, text in generated.items():
        path = out / name
        if not only_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            raise SpecError(f"{path}: out of date; run `speckit schema` and commit the file")
