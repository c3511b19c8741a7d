"""The command that looks at a host before anything is measured on it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kit.cli.options import json_option, print_json
from kit.doctor import State, examine
from kit.errors import PrerequisiteError
from kit.spec import load_spec

__all__ = ["doctor"]


@click.command()
@click.argument("spec", required=False, type=click.Path(path_type=Path))
@json_option
def doctor(spec: Path | None, as_json: bool) -> None:
    """Look at this host, for SPEC where one is given: one line each, ok, warning or blocks, with the fix.

    \b
    speckit doctor specs/a6000_triton.yaml
    """
    findings = []
    for finding in examine(load_spec(spec) if spec else None):
        findings.append(finding)
        if not as_json:
            click.echo(finding.line())
    if as_json:
        print_json({"schema_version": 1, "findings": [asdict(finding) for finding in findings]})
    blocking = [finding.what for finding in findings if finding.state is State.BLOCKS]
    if blocking:
        raise PrerequisiteError(f"{len(blocking)} findings block: {', '.join(blocking)}; see above for what to do")
