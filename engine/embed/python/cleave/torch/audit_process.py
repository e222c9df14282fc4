"""Tasks in processes of their own, since a kernel may end the one that it is in.

    for task, message in run_apart(tasks, work, jobs=2, seconds=60): ..

`work(task, skip, note, refused)` yields messages behind the first `skip`; it is
called in a child of this process, which has all that this one has. Where the
child ends without being done, the message is a Crash that says how, after how
many messages, and what `note` was last called with. Then work begins again at
the message that did not come, and `refused` has the notes not to come to again.
"""

from __future__ import annotations

import dataclasses
import mmap
import multiprocessing
import multiprocessing.connection
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

_NOTE_BYTES = 4096
# The most crashes of one message. Then work goes on behind it.
_MOST_CRASHES = 4


@dataclasses.dataclass
class Crash:
    """How a child ended: `SIGFPE`, or `60 s were over`. With `last` the
    message does not come."""

    how: str
    done: int
    note: str
    last: bool = False


class _Child:
    """One task at work."""

    def __init__(self, task: Any, work: Callable, skip: int, refused: list,
                 seconds: float):
        context = multiprocessing.get_context("fork")
        self.task = task
        self.done = skip
        self.refused = refused
        self.seconds = seconds
        self.notes = mmap.mmap(-1, _NOTE_BYTES)
        self.pipe, theirs = context.Pipe(duplex=False)
        self.process = context.Process(
            target=_child, daemon=True,
            args=(work, task, skip, self.notes, refused, theirs))
        self.process.start()
        theirs.close()
        self.begin = time.monotonic()

    def late(self) -> bool:
        """Whether it has given nothing for too long."""
        return time.monotonic() - self.begin > self.seconds

    def crash(self, how: str) -> Crash:
        note = self.notes[:].rstrip(b"\0").decode("utf-8", "replace")
        return Crash(how, self.done, note)


def _child(work, task, skip, notes, refused, pipe) -> None:
    def note(text: str) -> None:
        data = text.encode()[:_NOTE_BYTES]
        notes[:] = data + bytes(_NOTE_BYTES - len(data))

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for message in work(task, skip, note, refused):
        pipe.send(message)
    pipe.send(None)
    pipe.close()


def _signal_name(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"the status {code}"


def run_apart(tasks: list, work: Callable, jobs: int,
              seconds: float) -> Iterator[tuple[Any, Any]]:
    """Each task with each of its messages, as they come; None ends a task."""
    waiting = list(reversed(tasks))
    at_work: dict[Any, _Child] = {}

    def start(task, skip, refused=()) -> None:
        child = _Child(task, work, skip, list(refused), seconds)
        at_work[child.pipe] = child

    try:
        while waiting or at_work:
            while waiting and len(at_work) < max(jobs, 1):
                start(waiting.pop(), 0)
            ready = multiprocessing.connection.wait(list(at_work), timeout=1)
            for pipe in ready:
                yield from _receive(at_work, pipe, start)
            for pipe, child in list(at_work.items()):
                if pipe not in ready and child.late():
                    child.process.kill()
                    yield from _ended(at_work, pipe, start,
                                      f"{seconds:.0f} s were over")
    finally:
        for child in at_work.values():
            child.process.kill()


def _receive(at_work, pipe, start) -> Iterator[tuple[Any, Any]]:
    child = at_work[pipe]
    try:
        message = pipe.recv()
    except EOFError:
        child.process.join()
        yield from _ended(at_work, pipe, start,
                          _signal_name(child.process.exitcode))
        return
    if message is None:
        del at_work[pipe]
        child.process.join()
    else:
        child.done += 1
        child.refused = []
        child.begin = time.monotonic()
    yield child.task, message


def _ended(at_work, pipe, start, how: str) -> Iterator[tuple[Any, Any]]:
    child = at_work.pop(pipe)
    child.process.join()
    crash = child.crash(how)
    yield child.task, crash
    refused = [*child.refused, crash.note]
    if len(refused) < _MOST_CRASHES and how.startswith("SIG"):
        start(child.task, child.done, refused)
    else:
        yield child.task, dataclasses.replace(crash, last=True)
        start(child.task, child.done + 1)
