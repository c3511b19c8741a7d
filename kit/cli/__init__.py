"""The `speckit` command: parses arguments, calls one pipeline function, prints."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import click

from kit import __version__
from kit.cli.compare import compare_runs
from kit.cli.doctor import doctor
from kit.cli.evidence import diagnose_log, extract_contract, fetch_model, import_capture_files
from kit.cli.runs import list_runs, report, run, show
from kit.cli.selftest import selftest
from kit.cli.specs import check, plan, schema
from kit.errors import Interrupted, SpeckitError

__all__ = ["main"]


class _OneLineErrors(click.Group):
    """Turns every error of the kit into one line on stderr and its exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _end(ctx, Interrupted("stopped"))
        except SpeckitError as error:
            _end(ctx, error)
        except OSError as error:
            # a folder that is not there, not ours or full: the host's fault, whichever command met it
            _end(ctx, SpeckitError(f"{error.filename}: {error.strerror}; check the path, its rights and the disk"))


def _end(ctx: click.Context, error: SpeckitError) -> NoReturn:
    click.echo(f"Error: {error}", err=True)
    ctx.exit(error.exit_code)


@click.group(cls=_OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="speckit")
def main() -> None:
    """Does EAGLE3 speculation beat no speculation here, is it lossless, can the numbers be trusted?

    \b
    speckit run specs/quickstart.yaml     measure, then render the verdict
    speckit report                        render the newest run again
    """


for command in (
    check,
    plan,
    run,
    report,
    compare_runs,
    list_runs,
    show,
    schema,
    import_capture_files,
    diagnose_log,
    selftest,
    doctor,
):
    main.add_command(command)


@main.group("contract")
def contract_group() -> None:
    """What each SGLang version accepts and answers."""


contract_group.add_command(extract_contract)


@main.group("models")
def models_group() -> None:
    """Models that a spec can name without a path of a machine."""


models_group.add_command(fetch_model)
