"""Exceptions: one class for each code of the library's statuses.

    try:
        cleave.load("language 1\\nop f(x: T[]) -> T[] = bta * x\\n")
    except cleave.InvalidArgumentError as error:
        print(error)                     # the place, the line and a caret
        print(error.diagnostics[0]["help"])

Each is an `Error`, and also the builtin exception that stands closest to it.
"""

from __future__ import annotations

import json
from typing import Any


class Error(RuntimeError):
    """A call of the library failed.

    `code` is the number of the status and `message` its text. `diagnostics` has
    a dict for each mistake in rules: its file, line, column, kind, message and
    help. `refusal` says why something is impossible or not supported.
    """

    name = "UNKNOWN"

    def __init__(self, message: str = "", *, code: int = 2,
                 diagnostics: list[dict[str, Any]] | None = None,
                 refusal: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.diagnostics = diagnostics or []
        self.refusal = refusal

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (type(self), self.message, self.code,
                         self.diagnostics, self.refusal))


class CancelledError(Error):
    """The call was ended."""

    name = "CANCELLED"


class InvalidArgumentError(Error, ValueError):
    """The caller's mistake, or the rules'."""

    name = "INVALID_ARGUMENT"


class DeadlineExceededError(Error, TimeoutError):
    """The call took longer than it may."""

    name = "DEADLINE_EXCEEDED"


class NotFoundError(Error, LookupError):
    """There is no op, function or file of that name."""

    name = "NOT_FOUND"


class ResourceExhaustedError(Error, MemoryError):
    """The call needs more memory or work than it may."""

    name = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(Error):
    """A guard on sizes does not hold."""

    name = "FAILED_PRECONDITION"


class OutOfRangeError(Error, IndexError):
    """An index is out of range, or a loop does not end in time."""

    name = "OUT_OF_RANGE"


class UnimplementedError(Error, NotImplementedError):
    """It is impossible, or not supported; the message says why."""

    name = "UNIMPLEMENTED"


class InternalError(Error):
    """A defect of Cleave."""

    name = "INTERNAL"


class TracingError(Error, TypeError):
    """A traced function does with an array what a graph cannot record."""

    name = "TRACING"


_CLASSES: dict[int, type[Error]] = {
    1: CancelledError,
    3: InvalidArgumentError,
    4: DeadlineExceededError,
    5: NotFoundError,
    8: ResourceExhaustedError,
    9: FailedPreconditionError,
    11: OutOfRangeError,
    12: UnimplementedError,
    13: InternalError,
}


def _again(kind: type[Error], message: str, code: int,
           diagnostics: list[dict[str, Any]],
           refusal: dict[str, Any] | None) -> Error:
    return kind(message, code=code, diagnostics=diagnostics, refusal=refusal)


def error_of(code: int, text: str) -> Error:
    """The exception of a status: its number and its JSON."""
    try:
        status = json.loads(text)
    except ValueError:
        status = {"message": text}
    kind = _CLASSES.get(code, Error)
    return kind(status.get("message", ""), code=code,
                diagnostics=status.get("diagnostics"),
                refusal=status.get("refusal"))
