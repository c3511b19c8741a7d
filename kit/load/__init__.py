"""The load generator: which prompts, sent how, and what came back."""

from kit.load.arrivals import coalesced
from kit.load.driver import Job, Patience, drive, drive_schedule
from kit.load.guard import doubtful_content
from kit.load.health import ClientHealth
from kit.load.loop import run
from kit.load.pacing import due_times
from kit.load.stream import Exchange, to_record
from kit.load.workload import Prompt, Prompts, load_prompts, read_prompt_file, sent

__all__ = [
    "ClientHealth",
    "Exchange",
    "Job",
    "Patience",
    "Prompt",
    "Prompts",
    "coalesced",
    "doubtful_content",
    "drive",
    "drive_schedule",
    "due_times",
    "load_prompts",
    "read_prompt_file",
    "run",
    "sent",
    "to_record",
]
