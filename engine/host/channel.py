"""Pickled objects over a socket between the server's process and the engine's."""

from __future__ import annotations

import pickle
import socket
from typing import Any

from engine.sandbox.frames import Frames, framed


def packed(item: Any) -> bytes:
    """Return an object as the bytes of one channel message."""
    return framed(pickle.dumps(item, pickle.HIGHEST_PROTOCOL))


class Channel:
    """One end of a socket pair; both ends belong to this program."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._frames = Frames(end)

    def send(self, item: Any) -> None:
        """Write one object, waiting for room. Raises OSError when the other end is gone."""
        self.socket.sendall(packed(item))

    def receive(self) -> list[Any]:
        """Return the objects that are complete, after a wait for bytes if there are none.

        Raises EOFError when the other end is gone.
        """
        frames = [*self._frames.complete()]
        if not frames:
            self._frames.fill()
            frames = [*self._frames.complete()]
        return [pickle.loads(frame) for frame in frames]

    def receive_one(self) -> Any:
        """Wait for one object; later objects stay for `receive`."""
        return pickle.loads(self._frames.receive())
