"""The facts of a run: what was launched, what was sent, what came back. The narrow waist of the kit.

Everything to the left of this package produces these values (runtime, load, importers), everything to the
right consumes them (analysis, checks, verdict). They hold no conclusions. Times called `*_ns` are nanoseconds
of the client's monotonic clock unless the field says otherwise; token counts are the server's own.
"""

from kit.records.columns import Bools, Ints, Iterations, Rounds, Switches, Trace
from kit.records.facts import (
    FAULT,
    NO_TEXT,
    SYNTHETIC,
    Cell,
    GpuSample,
    Launch,
    LaunchStatus,
    Origin,
    Outcome,
    Phase,
    Repetition,
    RequestRecord,
    Resumption,
    Role,
    RunFacts,
    RunHeader,
)

__all__ = [
    "FAULT",
    "NO_TEXT",
    "SYNTHETIC",
    "Bools",
    "Cell",
    "GpuSample",
    "Ints",
    "Iterations",
    "Launch",
    "LaunchStatus",
    "Origin",
    "Outcome",
    "Phase",
    "Repetition",
    "RequestRecord",
    "Resumption",
    "Role",
    "Rounds",
    "RunFacts",
    "RunHeader",
    "Switches",
    "Trace",
]
