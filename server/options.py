"""Fields that the bodies of all APIs share, and the types of fields that several of them have."""

import re
from typing import Annotated, Any

from pydantic import Field

from server.edge.reading import RequestModel

MAX_STOP_CHARACTERS = 4096
MAX_STOP_IDS = 128
MAX_COUNT = 2**31 - 1
MAX_BIASES = 1024
MAX_ALLOWED_IDS = 3 * 2**16  # bodies have at most 200,000 values by default
MAX_BAD_WORDS = 128

TokenId = Annotated[int, Field(ge=0)]
StopString = Annotated[str, Field(min_length=1, max_length=MAX_STOP_CHARACTERS)]
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
TOOL_NAME = re.compile(r"^[a-zA-Z0-9_./:-]{1,256}$")  # MCP servers write dots, slashes and colons
ToolName = Annotated[str, Field(pattern=TOOL_NAME.pattern)]
TemplateVariables = Annotated[
    dict[str, Any], Field(default_factory=dict, description="Additional variables of the chat template.")
]
_StopTokenIds = Annotated[list[TokenId], Field(max_length=MAX_STOP_IDS, fail_fast=True)]
_AllowedTokenIds = Annotated[list[TokenId], Field(max_length=MAX_ALLOWED_IDS, fail_fast=True)]
_BadWords = Annotated[list[StopString], Field(max_length=MAX_BAD_WORDS, fail_fast=True)]
_Bias = Annotated[float, Field(ge=-100, le=100)]
_CacheSalt = Annotated[str, Field(min_length=1, max_length=256)]


class Options(RequestModel):
    """How tokens are drawn, and what else every API takes under the same name."""

    model: str = Field(default="", description="Name of a served model. Default: the first one.")
    stream: bool = False
    temperature: float | None = Field(default=None, ge=0, le=2, description="Default: the checkpoint's value, else 1.")
    top_p: float | None = Field(
        default=None, ge=0, le=1, description="0: the likeliest token. Default: the checkpoint's value, else 1."
    )
    top_k: int | None = Field(
        default=None, ge=-1, le=MAX_COUNT, description="-1 or 0 disables it. Default: the checkpoint's value, else off."
    )
    min_p: float | None = Field(
        default=None, ge=0, le=1, description="Minimum probability of a token relative to that of the most likely one."
    )
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1, description="Absent or -1: a random seed.")
    presence_penalty: float = Field(default=0.0, ge=-2, le=2)
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    repetition_penalty: float | None = Field(
        default=None, ge=1e-3, le=1e3, description="1 disables it. Default: the checkpoint's value, else 1."
    )
    logit_bias: dict[str, _Bias] = Field(
        default_factory=dict,
        description="Token id → value added to its logit.",
        json_schema_extra={"maxProperties": MAX_BIASES, "propertyNames": {"pattern": "^[0-9]+$"}},
    )
    stop_token_ids: _StopTokenIds = Field(default_factory=list)
    allowed_token_ids: _AllowedTokenIds = Field(default_factory=list, description="The only tokens that may be drawn.")
    bad_words: _BadWords = Field(default_factory=list, description="Words that must not occur.")
    min_tokens: int = Field(default=0, ge=0, le=MAX_COUNT, description="Minimum number of tokens in the answer.")
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    priority: int = Field(
        default=0,
        ge=-MAX_COUNT,
        le=MAX_COUNT,
        description="Lower ones run first. Requires --scheduling-policy priority.",
    )
    cache_salt: _CacheSalt | None = Field(
        default=None, description="Only requests with the same salt share cached prefixes."
    )
    draft_policy: str | None = Field(default=None, description="Draft policy of this request. Default: the server's.")
