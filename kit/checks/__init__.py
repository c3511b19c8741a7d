"""Every reason for doubt as a value, and the state of each cell that follows from them. Pure."""

from kit.checks.results import CellJudgement, CellState, Code, Doubt, Scope, Severity

__all__ = ["CellJudgement", "CellState", "Code", "Doubt", "Scope", "Severity"]
