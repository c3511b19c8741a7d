"""Every reason for doubt as a value, and the state of each cell that follows from them. Pure."""

from kit.checks.check import CHECKS, cell_states, check_run, evidence_of, run_checks
from kit.checks.client import disturbed
from kit.checks.evidence import Evidence
from kit.checks.offered import unfit_cells
from kit.checks.results import CellJudgement, CellState, Code, Doubt, Scope, Severity
from kit.checks.run import registered_in_time

__all__ = [
    "CHECKS",
    "CellJudgement",
    "CellState",
    "Code",
    "Doubt",
    "Evidence",
    "Scope",
    "Severity",
    "cell_states",
    "check_run",
    "disturbed",
    "evidence_of",
    "registered_in_time",
    "run_checks",
    "unfit_cells",
]
