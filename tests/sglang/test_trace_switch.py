"""The trace of a real server, switched off and on again while the server idles."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kit.importers.trace import read_recording
from kit.runtime import Endpoint, Server, server_info, set_trace

pytestmark = [pytest.mark.sglang, pytest.mark.slow]


def ask(endpoint: Endpoint, rid: str) -> None:
    body = {
        "rid": rid,
        "text": "The sea",
        "sampling_params": {"temperature": 0, "max_new_tokens": 5, "ignore_eos": True},
    }
    httpx.post(f"{endpoint.base_url}/generate", json=body, timeout=300, trust_env=False).raise_for_status()


def state(endpoint: Endpoint) -> dict[str, Any]:
    found: dict[str, Any] = server_info(endpoint.base_url)["internal_states"][0]["speckit_trace"]
    return found


def test_a_request_while_the_trace_is_off_leaves_no_row_and_no_loss(server: tuple[Server, Endpoint]) -> None:
    endpoint = server[1]
    assert endpoint.trace is not None
    ask(endpoint, "before")
    set_trace(endpoint, on=False)
    off = state(endpoint)
    ask(endpoint, "unseen")
    still = state(endpoint)
    set_trace(endpoint, on=True)
    ask(endpoint, "after")
    on = state(endpoint)
    assert [(shown["enabled"], shown["control"]) for shown in (off, still, on)] == [
        (False, "off"),
        (False, "off"),
        (True, "on"),
    ]
    # A prefill and four decodes, and with overlap one more whose row is a ghost.
    assert off["records"] == still["records"] < on["records"]
    recording = read_recording(endpoint.trace)
    assert {"before", "after"} <= set(recording.rids)
    assert "unseen" not in recording.rids
    assert (recording.lost, recording.faults, on["dropped"]) == (0, (), 0)
    assert [event["event"] for event in recording.events if event["event"] in ("pause", "resume")] == [
        "pause",
        "resume",
    ]
