"""The Open Inference Protocol, version 2, over REST: what KServe, Seldon, Triton and their clients speak.

A model takes the tensors user (BYTES, one) or history (BYTES) with, if one likes, rating (FP32) of the same length, and n
(INT32 or INT64, one), and gives item (BYTES) and score (FP32), best first. Errors are {"error": ...}, as the protocol wants.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

import topnrank
from topnrank.errors import ParameterError
from topnrank.serve.endpoints import operate
from topnrank.serve.endpoints.base import JSON, Call, Raw, Route
from topnrank.serve.problems import ProblemError
from topnrank.serve.wire import MAX_HISTORY, MAX_ID, MAX_N, Entry, RecommendRequest

if TYPE_CHECKING:
    from topnrank.serve.app import Server
    from topnrank.serve.models import Served

TAG = "open inference protocol"
Size = Annotated[int, Meta(ge=0, le=MAX_HISTORY)]


class InputTensor(Struct, kw_only=True):
    """A tensor of a request; its data are a flat or a nested list."""

    name: Annotated[str, Meta(max_length=MAX_ID)]
    shape: Annotated[list[Size], Meta(max_length=2)]
    datatype: Literal["BYTES", "FP32", "FP64", "INT32", "INT64"]
    data: list[Any]
    parameters: dict[str, Any] | None = None


class OutputName(Struct, kw_only=True):
    """A tensor that is asked for."""

    name: str
    parameters: dict[str, Any] | None = None


class InferRequest(Struct, kw_only=True):
    """A request for a list."""

    inputs: Annotated[list[InputTensor], Meta(min_length=1, max_length=8)]
    id: Annotated[str, Meta(max_length=MAX_ID)] | None = None
    outputs: Annotated[list[OutputName], Meta(max_length=8)] | None = None
    parameters: dict[str, Any] | None = None


class OutputTensor(Struct):
    """A tensor of the answer."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class InferAnswer(Struct, omit_defaults=True):
    """A list."""

    model_name: str
    model_version: str
    outputs: list[OutputTensor]
    id: str | None = None


class TensorMetadata(Struct):
    """A tensor that the model takes or gives; -1 is any length."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(Struct):
    """What a model takes and gives."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class ServerMetadata(Struct):
    """Who answers."""

    name: str
    version: str
    extensions: list[str]


_INPUTS = [
    TensorMetadata("user", "BYTES", [1]),
    TensorMetadata("history", "BYTES", [-1]),
    TensorMetadata("rating", "FP32", [-1]),
    TensorMetadata("n", "INT32", [1]),
]
_OUTPUTS = [TensorMetadata("item", "BYTES", [-1]), TensorMetadata("score", "FP32", [-1])]


async def live(server: "Server", call: Call) -> Raw:
    """The process lives."""
    return Raw(b'{"live":true}', JSON)


async def ready(server: "Server", call: Call) -> Raw:
    """The models are warm, and events can be stored."""
    await operate.ready(server, call)
    return Raw(b'{"ready":true}', JSON)


async def about(server: "Server", call: Call) -> ServerMetadata:
    """The server and its version."""
    return ServerMetadata("topnrank", topnrank.__version__, [])


async def model_metadata(server: "Server", call: Call) -> ModelMetadata:
    """The tensors of a model."""
    served = _served(server, call)
    return ModelMetadata(served.name, [served.version], "topnrank", _INPUTS, _OUTPUTS)


async def model_ready(server: "Server", call: Call) -> Raw:
    """The model is warm."""
    name = _served(server, call).name
    return Raw(b'{"name":"' + name.encode() + b'","ready":true}', JSON)


async def infer(server: "Server", call: Call) -> InferAnswer:
    """A list for a user or a history."""
    served, body = _served(server, call), call.body
    given = {tensor.name: _flat(tensor) for tensor in body.inputs}
    if unknown := given.keys() - {tensor.name for tensor in _INPUTS}:
        raise ParameterError(f"inputs: there is no input {min(unknown)!r}; the inputs: user, history, rating, n")
    user, history, ratings = given.get("user"), given.get("history"), given.get("rating")
    if ratings is not None and (history is None or len(history) != len(ratings)):
        raise ParameterError("inputs: rating needs history, and must be as long")
    entries: list[Any] | None = history
    if ratings is not None and history is not None:
        entries = [Entry(item=item, rating=_number(rating)) for item, rating in zip(history, ratings, strict=True)]
    (n,) = given.get("n") or [10]
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MAX_N:
        raise ParameterError(f"inputs: n must be an integer from 1 to {MAX_N}")
    if user is not None and len(user) != 1:
        raise ParameterError("inputs: user holds one id; send one request for each user")
    request = RecommendRequest(user=user[0] if user else None, history=entries, n=n, model=served.name)
    answer = await server.answer(request)
    items, scores = [str(row.item) for row in answer.items], [row.score for row in answer.items]
    outputs = [
        OutputTensor("item", [len(items)], "BYTES", items),
        OutputTensor("score", [len(scores)], "FP32", scores),
    ]
    if body.outputs:
        wanted = {one.name for one in body.outputs}
        outputs = [one for one in outputs if one.name in wanted]
    return InferAnswer(served.name, served.version, outputs, body.id)


def _served(server: "Server", call: Call) -> "Served":
    live = server.models.live.get(call.path["model"])
    if live is None:
        raise ProblemError(
            404, f"there is no model {call.path['model']!r}; the models: {', '.join(server.models.live)}"
        )
    return live.current


def _flat(tensor: InputTensor) -> list[Any]:
    """The data of a tensor, as many as its shape says; ids as text."""
    data = tensor.data
    if len(tensor.shape) == 2 and data and all(isinstance(row, list) for row in data):
        data = [value for row in data for value in row]
    size = 1
    for length in tensor.shape:
        size *= length
    if len(data) != size:
        raise ParameterError(f"inputs: {tensor.name} has {len(data)} values, and its shape says {size}")
    if tensor.name not in ("user", "history"):
        return data
    ids = [value if isinstance(value, int) and not isinstance(value, bool) else _text(tensor, value) for value in data]
    if any(isinstance(one, int) and not -(2**63) <= one < 2**63 for one in ids):
        raise ParameterError(f"inputs: {tensor.name} holds an integer of more than 64 bits")
    return ids


def _text(tensor: InputTensor, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID or "\0" in value:
        raise ParameterError(f"inputs: {tensor.name} holds text of 1 to {MAX_ID} letters")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e6 <= value <= 1e6:
        raise ParameterError("inputs: rating holds numbers from -1,000,000 to 1,000,000")
    return float(value)


ROUTES = [
    Route("GET", "/v2/health/live", None, live, None, tag=TAG, plain_errors=True),
    Route("GET", "/v2/health/ready", None, ready, None, problems=(503,), tag=TAG, plain_errors=True),
    Route("GET", "/v2", None, about, ServerMetadata, tag=TAG, plain_errors=True),
    Route("GET", "/v2/models/{model}", "read", model_metadata, ModelMetadata, tag=TAG, plain_errors=True),
    Route("GET", "/v2/models/{model}/ready", "read", model_ready, None, tag=TAG, plain_errors=True),
    Route(
        "POST",
        "/v2/models/{model}/infer",
        "read",
        infer,
        InferAnswer,
        body=InferRequest,
        problems=(503,),
        tag=TAG,
        plain_errors=True,
    ),
]
