"""Worlds with known truth, in virtual time, through the same records, store, analysis and verdict as a measured run."""

from kit.selftest.replicate import Result, run_selftest
from kit.selftest.table import calibration_page, result_lines

__all__ = ["Result", "calibration_page", "result_lines", "run_selftest"]
