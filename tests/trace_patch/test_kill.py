"""A killed writer loses nothing it had recorded, and writers that share a folder do not disturb each other."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kit.errors import ImportFileError
from kit.importers.trace import read_recording
from tests.trace_patch import PLUGIN

ROOT = PLUGIN.parents[1]

# Small segments, so that many a kill falls into the change from one to the next.
WRITE = """
import os, struct, sys
from pathlib import Path
import tests.trace_patch
from tests.trace_patch.written import Req, decode, recorder
directory, most = Path(sys.argv[1]), int(sys.argv[2])
writer = recorder(directory, segment_bytes=16384)
reqs = [Req(f"{sys.argv[3]}-{row}") for row in range(40)]
for number in range(1, most + 1):
    decode(writer, number, reqs, [row % 4 for row in range(40)])
    os.write(1, struct.pack("<I", number))
writer.end(iteration=most)
"""


def writing(directory: Path, *, most: int, prefix: str = "r") -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-c", WRITE, str(directory), str(most), prefix]
    return subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE)


@pytest.mark.parametrize("seed", range(6))
def test_after_kill_9_every_iteration_that_was_recorded_can_be_read(tmp_path: Path, seed: int) -> None:
    process = writing(tmp_path, most=1_000_000)
    assert process.stdout is not None
    process.stdout.read(4 * Random(seed).randrange(1, 3000))
    os.kill(process.pid, signal.SIGKILL)
    rest = process.stdout.read()
    process.wait()
    process.stdout.close()
    (acknowledged,) = struct.unpack("<I", rest[len(rest) // 4 * 4 - 4 : len(rest) // 4 * 4]) if len(rest) >= 4 else (1,)
    recording = read_recording(tmp_path)
    numbers = recording.steps.number
    assert np.array_equal(numbers, np.arange(1, len(numbers) + 1))
    assert len(numbers) >= acknowledged
    assert recording.lost == len(recording.faults) <= 1
    assert not recording.ended


def test_writers_in_one_folder_keep_apart_and_the_reader_refuses_to_mix_them(tmp_path: Path) -> None:
    processes = [writing(tmp_path, most=300, prefix=name) for name in "ab"]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    with pytest.raises(ImportFileError, match="traces of 2 processes"):
        read_recording(tmp_path)
    streams = {path.name[:32] for path in tmp_path.iterdir()}
    for stream in streams:
        alone = tmp_path / stream
        alone.mkdir()
        for path in tmp_path.glob(f"{stream}-*"):
            path.rename(alone / path.name)
        recording = read_recording(alone)
        assert (len(recording.steps), recording.lost, recording.ended) == (300, 0, True)
        assert len({rid[0] for rid in recording.rids}) == 1
