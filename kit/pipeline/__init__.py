"""The whole story on one screen: a spec is measured into a run file, a run file is judged, a verdict is published."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from kit import __version__
from kit.analysis import spec_of
from kit.compare import Factor, RunComparison, compare
from kit.doctor import require_host
from kit.importers.capture import import_capture
from kit.load import doubtful_content
from kit.models import located
from kit.pipeline.agenda import Appointment, agenda, require_same_run
from kit.pipeline.experiment import Experiment, measure
from kit.pipeline.faults import faults_by_arm
from kit.pipeline.preview import Preview, preview
from kit.pipeline.run_files import newest_run, results_folder, run_files
from kit.pipeline.truth import simulated_truth
from kit.pipeline.watcher import Watcher
from kit.plan import Plan, Selection
from kit.provenance import host_facts, spec_commit
from kit.records import FAULT, Origin, Resumption, RunFacts, RunHeader
from kit.report import ReportPaths, write_report
from kit.runtime import Runtime, runtime_for
from kit.sglang import without_places
from kit.spec import RULES_VERSION, expanded_json
from kit.store import (
    add_resumption,
    create_run,
    export_parquet,
    parquet_files,
    read_header,
    read_launches,
    read_run,
    write_facts,
)
from kit.verdict import Verdict, judge

__all__ = [
    "Preview",
    "Sitting",
    "Watcher",
    "compared",
    "import_run",
    "newest_run",
    "preview",
    "published",
    "results_folder",
    "run_files",
    "run_spec",
]


@dataclass(frozen=True, slots=True)
class Sitting:
    """What this invocation measures of a run.

    `out` is the run file, None for results/<run id>.duckdb; `selection` a part of the spec; with `resume` the file
    exists and is continued; `launches` is the largest number of launches now, the others being left for later;
    `faults` are what a stand-in shall get wrong: NAME[=VALUE] for every arm or ARM:NAME[=VALUE] for one.
    """

    out: Path | None = None
    selection: Selection | None = None
    resume: bool = False
    launches: int | None = None
    faults: tuple[str, ...] = ()


def run_spec(source: Path, *, sitting: Sitting, watcher: Watcher) -> Path:
    """Measure the spec in `source`, or the part of it that a sitting asks for; the path of the run file.

    Raises SpecError when a run cannot be resumed because spec, host or models are not what they were, PrerequisiteError
    when the host lacks what the spec needs.
    """
    planned = preview(source, sitting.selection)
    faults = faults_by_arm(sitting.faults, planned.spec)
    require_host(planned.spec)
    runtime = runtime_for(planned.spec, faults=faults)
    header = _header(planned, source, runtime, sitting.faults)
    path = sitting.out or results_folder() / f"{header.run_id}.duckdb"
    left = _opened(path, header, planned.plan, resume=sitting.resume)
    experiment = Experiment(located(planned.spec), planned.prompts, left[: sitting.launches], runtime, path)
    measure(experiment, watcher=watcher)
    if later := len(left) - len(experiment.agenda):
        watcher.say(f"{later} launches are left: speckit run {source} --out {path} --resume")
    return path


def _opened(path: Path, header: RunHeader, plan: Plan, *, resume: bool) -> tuple[Appointment, ...]:
    """The run file made, or its seam marked; the launches that are left."""
    if not resume:
        create_run(path, header)
        return agenda(plan, ())
    require_same_run(read_header(path), header)
    left = agenda(plan, read_launches(path))
    if left:
        add_resumption(path, Resumption(header.created_utc, header.kit_version, left[0].number, header.host))
    return left


def published(run_file: Path, *, out: Path) -> tuple[Verdict, ReportPaths]:
    """The verdict on the facts in `run_file`, recomputed every time, and the report written below `out`.

    `run_file` may be the folder of a report: its Parquet files give the same report again.
    """
    facts = _shareable(read_run(run_file))
    verdict = judge(facts)
    notes = json.loads(facts.header.spec_json).get("notes")
    with TemporaryDirectory(prefix="speckit-") as scratch:
        attached = parquet_files(run_file) or export_parquet(run_file, Path(scratch), launches=facts.launches)
        return verdict, write_report(verdict, out=out, notes=notes, attachments=attached)


def compared(first: Path, second: Path, *, factor: Factor) -> RunComparison:
    """The run in `second` against that in `first`. ComparisonRefused when more than `factor` differs."""
    return compare(_shareable(read_run(first)), _shareable(read_run(second)), factor=factor)


def _shareable(facts: RunFacts) -> RunFacts:
    """The facts as they may leave the host: a report tells no path of it, and nothing is judged by one."""
    spec = spec_of(facts)
    return replace(facts, launches=tuple(without_places(launch, spec) for launch in facts.launches))


def import_run(source: Path, *, out: Path) -> Path:
    """The capture in `source` as a run file; appears complete or not at all."""
    write_facts(out, import_capture(source))
    return out


def _header(planned: Preview, source: Path, runtime: Runtime, faults: Sequence[str]) -> RunHeader:
    now, origin = datetime.now(UTC), runtime.origin
    commit = spec_commit(source)
    truth = {"simulated_truth": simulated_truth(planned.spec, planned.prompts)} if origin is Origin.SIMULATED else {}
    return RunHeader(
        run_id=f"{now:%Y%m%d-%H%M%S}-{planned.spec_hash[:6]}",
        origin=origin,
        spec_name=planned.spec.name,
        spec_json=expanded_json(planned.spec),
        spec_hash=planned.spec_hash,
        workload_hash=planned.prompts.sha256,
        rules_version=RULES_VERSION,
        kit_version=__version__,
        created_utc=now.isoformat(timespec="seconds"),
        host=host_facts() | truth | runtime.facts(),
        spec_commit=commit.commit if commit else None,
        spec_committed_utc=commit.committed_utc if commit else None,
        declarations=(
            *planned.plan.declarations,
            *(f"{FAULT}{fault}" for fault in faults),
            *doubtful_content(planned.prompts.prompts),
        ),
    )
