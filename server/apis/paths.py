"""Paths of the APIs, and the dialect of errors that one of them has."""

import re

from server.apis.messages.errors import error_body
from server.config import GENERATING
from server.edge.asgi import Dialect, Paths

# What Azure's clients put before the names of endpoints. A deployment's name may have slashes.
_AZURE = re.compile(r"^/openai/(?:v1/|deployments/.+?/(?=chat/completions|completions)|(?=models|responses))")

PATHS = Paths(
    generating=GENERATING,
    aliases=_AZURE,
    dialects=[Dialect("/v1/messages", error_body, "request-id")],  # the header that Anthropic's SDKs read
)
