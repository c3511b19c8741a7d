"""A verdict as text: Markdown, JSON, figures and a summary for the terminal. Judges nothing, opens no run file."""

from kit.report.comparison import comparison_json, render_comparison
from kit.report.dump import verdict_json
from kit.report.figures import Picture, pictures
from kit.report.index import write_index
from kit.report.levels import DEEPEST, with_headings_from
from kit.report.madr import madr
from kit.report.metrics_page import metrics_page
from kit.report.page import Extras, render
from kit.report.summary import summary
from kit.report.write import ReportPaths, folder_digest, write_report

__all__ = [
    "DEEPEST",
    "Extras",
    "Picture",
    "ReportPaths",
    "comparison_json",
    "folder_digest",
    "madr",
    "metrics_page",
    "pictures",
    "render",
    "render_comparison",
    "summary",
    "verdict_json",
    "with_headings_from",
    "write_index",
    "write_report",
]
