"""x[key] of a traced array, by numpy's rules.

Keys are whole numbers, slices with steps, None, an ellipsis, and arrays of
whole numbers (numpy's, or traced ones). A mask of numpy's stands for the places
where it is true; a traced mask is an error, since its count is not known. A
place out of range is an error: at once where it is known, else as the graph
runs.
"""

from __future__ import annotations

from typing import Any

from .errors import OutOfRangeError, TracingError
from .sizes import SymbolicSize
from .tracing import Tracer, convert, innermost

_FULL = slice(None)


def take_key(x: Tracer, key: Any) -> Tracer:
    """x[key]."""
    entries = _expand(x, list(key) if isinstance(key, tuple) else [key])
    arrays = [entry for entry in entries if _is_array(entry)]
    if arrays:
        return _gather(innermost(x, arrays).lift(x), entries)
    return _basic(x, entries)


def _is_array(entry: Any) -> bool:
    return hasattr(entry, "dtype") and not _is_whole(entry)


def _is_whole(entry: Any) -> bool:
    """A number that is known: Python's, or a number of numpy's."""
    if isinstance(entry, bool):
        return False
    if isinstance(entry, int):
        return True
    return hasattr(entry, "__index__") and not isinstance(entry, Tracer) and \
        getattr(entry, "shape", None) == () and entry.dtype.kind in "iu"


def _expand(x: Tracer, entries: list[Any]) -> list[Any]:
    """An entry for each axis and each new axis; masks become places."""
    import numpy
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, (list, range)):
            entry = numpy.asarray(entry)
            if entry.size == 0:
                entry = entry.astype(numpy.int64)
        if isinstance(entry, (bool, numpy.bool_)):
            entry = numpy.asarray(entry)
        if isinstance(entry, Tracer):
            if entry.type.dtype == "bool":
                raise TracingError(
                    "an index by a traced mask: how many elements it gives is "
                    "not known; `where` keeps the shape")
            if entry.type.dtype[0] not in "iu":
                raise IndexError(f"an index of dtype {entry.type.dtype}")
        elif hasattr(entry, "dtype") and not _is_whole(entry):
            entry = numpy.asarray(entry)
            if entry.dtype == bool:
                found += _places(x, entry, len(_axes(found)))
                continue
            if entry.dtype.kind not in "iu":
                raise IndexError(f"an index of dtype {entry.dtype}")
        found.append(entry)
    dots = [i for i, entry in enumerate(found) if entry is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has one ellipsis at most")
    missing = x.ndim - len(_axes(found))
    if missing < 0:
        raise IndexError(f"{len(_axes(found))} indices for {x.ndim} axes")
    at = dots[0] if dots else len(found)
    found[at:at + len(dots)] = [_FULL] * missing
    return found


def _axes(entries: list[Any]) -> list[Any]:
    """The entries that stand for axes of the array."""
    return [e for e in entries if e is not None and e is not Ellipsis]


def _places(x: Tracer, mask: Any, axis: int) -> list[Any]:
    for size, expected in zip(mask.shape, x.shape[axis:axis + mask.ndim]):
        if size != expected:
            raise IndexError(f"a mask of {size} for an axis of {expected}")
    if mask.ndim == 0:
        raise TracingError("an index by True or False: `reshape` adds axes")
    return list(mask.nonzero())


def _slice(entry: slice, size: Any) -> tuple[Any, Any, int]:
    """The first place, the count and the step of a slice.

    Of a symbolic size the bounds lie within it: a guard of the graph says so.
    """
    step = 1 if entry.step is None else entry.step.__index__()
    if step == 0:
        raise ValueError("a slice has no step of 0")
    if isinstance(size, int):
        start, stop, step = entry.indices(size)
        return start, len(range(start, stop, step)), step

    def place(bound: Any) -> Any:
        if isinstance(bound, SymbolicSize):
            return bound
        bound = bound.__index__()
        return size + bound if bound < 0 else bound

    if step > 0:
        start = 0 if entry.start is None else place(entry.start)
        stop = size if entry.stop is None else place(entry.stop)
        reach = stop - start
    else:
        start = size - 1 if entry.start is None else place(entry.start)
        stop = None if entry.stop is None else place(entry.stop)
        if entry.start is None and stop is None:
            reach = size
        else:
            reach = start + 1 if stop is None else start - stop
    pace = abs(step)
    count = reach if pace == 1 else (reach + (pace - 1)) // pace
    return start, count, step


def _basic(x: Tracer, entries: list[Any]) -> Tracer:
    """Numbers, slices and new axes."""
    starts: list[Any] = []
    sizes: list[Any] = []
    steps: list[int] = []
    flipped: list[int] = []
    shape: list[Any] = []
    for entry in entries:
        if entry is None:
            shape.append(1)
            continue
        axis = len(starts)
        size = x.shape[axis]
        if isinstance(entry, slice):
            start, count, step = _slice(entry, size)
            if step < 0:
                flipped.append(axis)
                start = start + (count - 1) * step
            if isinstance(count, int) and count == 0:
                start, step = 0, 1
            shape.append(count)
        else:
            place = entry.__index__()
            if isinstance(size, int) and not -size <= place < size:
                raise OutOfRangeError(
                    f"index {place} is out of range for an axis of {size}",
                    code=11)
            start, count, step = (place if place >= 0 else size + place), 1, 1
        starts.append(start)
        sizes.append(count)
        steps.append(abs(step))
    trace = x.trace
    whole = all(isinstance(start, int) and start == 0 for start in starts)
    if not (whole and tuple(sizes) == x.shape and set(steps) <= {1}):
        x = trace.call("slice", [x], {"start": starts, "size": sizes,
                                      "stride": steps})[0]
    if flipped:
        x = trace.call("reverse", [x], {"axes": flipped})[0]
    if tuple(shape) != x.shape:
        x = trace.call("reshape", [x], {"shape": shape})[0]
    return x


def _gather(x: Tracer, entries: list[Any]) -> Tracer:
    """Arrays of places on some axes, and the rest as `_basic` does it."""
    from . import namespace
    trace = x.trace
    basic: list[Any] = []
    picked: list[tuple[int, Any]] = []  # places in `basic`, and their arrays
    for entry in entries:
        if _is_array(entry) or (entry is not None
                                and not isinstance(entry, slice)):
            picked.append((len(basic), entry))
            basic.append(_FULL)
        else:
            basic.append(entry)
    x = _basic(x, basic)
    axes = [axis for axis, _ in picked]
    found = []
    for axis, entry in picked:
        place = trace.lift(entry) if hasattr(entry, "dtype") else \
            trace.constant(entry.__index__(), "i64")
        _check(entry, x.shape[axis])
        place = convert(place, "i64")
        size = trace.lift(x.shape[axis], "i64")
        found.append(namespace.where(place < 0, place + size, place))
    found = namespace.broadcast_arrays(*found)
    index = namespace.stack(found, axis=-1)
    zero = trace.constant(False if x.type.dtype == "bool" else 0, x.type.dtype)
    y = trace.call("gather", [x, index, zero],
                   {"axes": axes, "batch": 0, "mode": "error"})[0]
    # The axes of the places come first; where the axes that they stand for are
    # neighbours, numpy has them there.
    count = index.ndim - 1
    at = [i for i, entry in enumerate(entries)
          if entry is not None and not isinstance(entry, slice)]
    if at[-1] - at[0] != len(at) - 1 or axes[0] == 0:
        return y
    rest = list(range(count, y.ndim))
    order = rest[:axes[0]] + list(range(count)) + rest[axes[0]:]
    return namespace.permute_dims(y, tuple(order))


def _check(entry: Any, size: Any) -> None:
    """Known places are in range."""
    if isinstance(entry, Tracer) or not isinstance(size, int):
        return
    import numpy
    places = numpy.asarray(entry)
    wrong = places[(places < -size) | (places >= size)]
    if wrong.size:
        raise OutOfRangeError(f"index {wrong.flat[0]} is out of range for an "
                              f"axis of {size}", code=11)
