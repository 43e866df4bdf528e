"""What is written to a connection, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from server.protocol import _Joining

HEAD, BODY = b"HTTP/1.1 200 OK\r\n\r\n", b"data: 1\n\n"


class Connection(asyncio.Transport):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        assert not self.closed
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("does", "written"),
    [
        ("head body body", [HEAD + BODY, BODY]),
        ("head turn body", [HEAD, BODY]),
        ("head close", [HEAD]),
        ("head body turn head body close", [HEAD + BODY, HEAD + BODY]),
        ("body close", [BODY]),
    ],
)
def test_a_head_goes_with_what_follows_at_once_and_alone_where_nothing_does(does: str, written: list[bytes]) -> None:
    connection = Connection()

    async def run() -> None:
        joining = _Joining(connection)
        for step in does.split():
            if step == "turn":
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            elif step == "close":
                joining.close()
            else:
                joining.write(HEAD if step == "head" else memoryview(BODY))

    asyncio.run(run())
    assert connection.written == written
    assert connection.closed == does.endswith("close")
