"""Errors as answers: application/problem+json with one sentence, and nothing of the server's insides."""

from topnrank.errors import InputError, UnknownIdError

TITLES = {
    400: "Bad request",
    401: "No valid key",
    403: "Key not allowed to do this",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Request too large",
    415: "Not JSON",
    421: "Wrong host",
    422: "Request cannot be followed",
    500: "Internal error",
    503: "Not available now",
}


class ProblemError(Exception):
    """A request that gets an error for an answer."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


class StoreUnavailableError(Exception):
    """The event store cannot be read or written now; the sentence says why."""

    def __init__(self, sentence: str, *, for_good: bool = False) -> None:
        super().__init__(sentence)
        self.for_good = for_good
        """Whether it will not pass by itself"""


INTERNAL = (
    "something went wrong in the server, which has logged it under this request id; the request may be tried again"
)


def as_problem(error: Exception) -> ProblemError:
    """The answer to what was raised; what nobody foresaw says nothing of itself."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, UnknownIdError):
        return ProblemError(404, str(error))
    if isinstance(error, InputError):
        return ProblemError(422, str(error))
    if isinstance(error, StoreUnavailableError):
        return ProblemError(503, str(error), {"retry-after": "1"})
    return ProblemError(500, INTERNAL)
