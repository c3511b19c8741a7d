"""The load generator: which prompts, sent how, and what came back."""

from kit.load.driver import ClientHealth, Job, drive
from kit.load.stream import Exchange, to_record
from kit.load.workload import Prompt, Prompts, load_prompts, read_prompt_file

__all__ = [
    "ClientHealth",
    "Exchange",
    "Job",
    "Prompt",
    "Prompts",
    "drive",
    "load_prompts",
    "read_prompt_file",
    "to_record",
]
