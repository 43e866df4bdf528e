"""Bodies that refer to stored responses count as large as what they may refer to."""

from __future__ import annotations

from typing import Any

import pytest

from server.apis.responses.api import ResponsesApi
from server.apis.responses.store import ResponseStore, StoredResponse


@pytest.mark.parametrize(
    ("body", "refers"),
    [
        (b'{"input": [{"id": "msg_1", "role": "user", "content": "Hi"}]}', False),
        (b'{"previous_response_id": "resp_1"}', True),
        (b'{"input": [{"type": "item_reference", "id": "msg_1"}]}', True),
    ],
)
def test_only_references_count_the_store(body: bytes, refers: bool) -> None:
    store = ResponseStore(100)
    store.add(StoredResponse("resp_1", "", None, b"", {}, b"x" * 50))
    model: Any = None  # sizes need none
    assert ResponsesApi(model, store, 1000).size(body) == len(body) + 50 * refers
