"""The listener behind a port is known by its process group."""

from __future__ import annotations

import os
import socket

from kit.runtime.owner import listens


def test_a_listener_is_found_by_port_and_group() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert listens(port, group=os.getpgrp()) is True
        assert listens(port, group=0) is False
    assert listens(port, group=os.getpgrp()) is None


def test_a_listener_on_every_address_of_ipv6_counts_too() -> None:
    with socket.socket(socket.AF_INET6) as listener:
        listener.bind(("::1", 0))
        listener.listen()
        assert listens(listener.getsockname()[1], group=os.getpgrp()) is True


def test_a_connection_is_no_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        assert listens(client.getsockname()[1], group=os.getpgrp()) is None
