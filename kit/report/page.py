"""The whole document: one view of strings for each section, and the template that puts them in order."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jinja2 import Environment, PackageLoader, StrictUndefined

from kit.plan import selection_of
from kit.records import FAULT, Origin
from kit.report.escape import code, fence, paragraphs, prose, text
from kit.report.figures import FIGURES
from kit.report.flags import flag_line
from kit.report.sections.acceptance import AcceptanceView, acceptance_view
from kit.report.sections.adaptive import AdaptiveView, adaptive_view
from kit.report.sections.answer import AnswerView, answer_view
from kit.report.sections.cost import CostView, cost_view
from kit.report.sections.doubts import DoubtsView, doubts_view
from kit.report.sections.gate import GateView, gate_view
from kit.report.sections.gpus import GpuView, gpu_view
from kit.report.sections.lossless import LosslessView, lossless_view
from kit.report.sections.oracle import OracleView, oracle_view
from kit.report.sections.ran import RanView, ran_view
from kit.report.sections.requests import RequestsView, requests_view
from kit.report.sections.saturation import SaturationView, saturation_view
from kit.report.sections.service import ServiceView, service_view
from kit.report.sections.switching import SwitchView, switch_view
from kit.report.table import table
from kit.verdict import Verdict

__all__ = ["Extras", "render", "run_command", "templates", "tidy"]

_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Extras:
    """What a report says besides the verdict.

    `command` repeats the run (None: derived from the spec's name); `files` maps the name of a file to its SHA-256;
    `figures` maps the name of a figure to its Markdown (empty in the text that must stand alone).
    """

    notes: str | None = None
    command: str | None = None
    supersedes: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FiguresView:
    """The Markdown of each figure; empty where there is none."""

    throughput: str
    ratio: str
    latency: str
    acceptance: str
    cost: str
    classes: str
    depth: str
    drift: str


@dataclass(frozen=True, slots=True)
class NotMeasuredView:
    """Something that is missing, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class PageView:
    """Everything the template may use: ready Markdown strings and the views of the sections."""

    flags: str
    title: str
    question: str
    supersedes: str
    answer: AnswerView
    gate: GateView
    lossless: LosslessView
    saturation: SaturationView
    cost: CostView
    acceptance: AcceptanceView
    adaptive: AdaptiveView
    switching: SwitchView
    oracle: OracleView
    requests: RequestsView
    service: ServiceView
    doubts: DoubtsView
    ran: RanView
    gpus: GpuView
    limits: tuple[str, ...]
    not_measured: tuple[NotMeasuredView, ...]
    command: str
    notes: str
    files: str
    figures: FiguresView


def templates() -> Environment:
    """The templates of this package. Their input is Markdown already, so nothing is escaped a second time."""
    loader = PackageLoader("kit.report", "templates")
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def render(verdict: Verdict, *, extras: Extras | None = None) -> str:
    """The verdict as a Markdown document that ends in one newline; the same text for the same arguments."""
    page = _page(verdict, extras or Extras())
    return tidy(templates().get_template("verdict.md.j2").render(page=page))


def tidy(document: str) -> str:
    """One blank line wherever absent parts leave several, and one newline at the end."""
    return _BLANK_LINES.sub("\n\n", document).strip("\n") + "\n"


def _page(verdict: Verdict, extras: Extras) -> PageView:
    levels = {level.concurrency for level in verdict.speed.levels}
    return PageView(
        flags=flag_line(verdict.headings),
        title=text(verdict.title),
        question=text(verdict.question),
        supersedes=code(extras.supersedes) if extras.supersedes else "",
        answer=answer_view(verdict),
        gate=gate_view(verdict.gate),
        lossless=lossless_view(verdict.losslessness),
        saturation=saturation_view(verdict),
        cost=cost_view(verdict.costs),
        acceptance=acceptance_view(verdict.acceptance, verdict.speed.content),
        adaptive=adaptive_view(verdict.adaptive, verdict.depth_paces),
        switching=switch_view(verdict.switches),
        oracle=oracle_view(verdict.oracles),
        requests=requests_view(verdict.heterogeneity),
        service=service_view(verdict.service.levels, limits=verdict.service.limits),
        doubts=doubts_view(verdict.doubts),
        ran=ran_view(verdict.what_ran, levels=levels),
        gpus=gpu_view(verdict.what_ran.gpus, verdict.what_ran.energies),
        limits=tuple(map(prose, verdict.limits)),
        not_measured=tuple(NotMeasuredView(prose(item.what), prose(item.reason)) for item in verdict.not_measured),
        command=fence([extras.command or run_command(verdict)]),
        notes=paragraphs(extras.notes or ""),
        files=_files(extras.files),
        figures=FiguresView(**{name: extras.figures.get(name, "") for name in FIGURES}),
    )


def run_command(verdict: Verdict) -> str:
    """What makes the run again."""
    ran = verdict.what_ran
    if ran.origin is Origin.IMPORTED:
        return f"speckit report results/{ran.run_id}.duckdb"
    return " ".join(["speckit run", f"specs/{ran.spec_name}.yaml", *_options(ran.declarations)])


def _options(declarations: Sequence[str]) -> Iterator[str]:
    """What the run was told beside its spec."""
    part = selection_of(declarations)
    for name, values in (("arms", part.arms), ("levels", part.levels), ("blocks", part.blocks and (part.blocks,))):
        if values:
            yield f"--{name} {','.join(map(str, values))}"
    for said in declarations:
        if said.startswith(FAULT):
            yield f"--fault {shlex.quote(said.removeprefix(FAULT))}"


def _files(files: Mapping[str, str]) -> str:
    if not files:
        return ""
    rows = [(code(name), code(digest)) for name, digest in sorted(files.items())]
    return table(("File", "SHA-256"), rows, align="ll")
