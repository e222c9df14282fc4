"""Statements that repeat, as helpers of rules.

A model's layers often repeat: the same statements with other operands. Each
such run of statements becomes a `def`, named after the node where it begins,
and its occurrences become calls.
"""

from __future__ import annotations

import re

from .names import Names
from .trace import Body, Statement, words

_SHORTEST = 4
_LONGEST = 400
# Comparing all pairs of statements is quadratic.
_STATEMENTS = 4000


def fold_blocks(body: Body, names: Names, results: list[str]) -> list[str]:
    """Replaces repeated runs of the body's statements by calls; the lines of
    the helpers that they call. `results` are the texts that the body gives."""
    tail = words(results)
    lines: list[str] = []
    if len(body.statements) > _STATEMENTS:
        return lines
    for _ in range(20):
        found = _best_run(body.statements)
        if found is None:
            break
        starts, length = found
        lines += _fold(body, starts, length, names, tail)
    return lines


def _shape_of_run(statements, start, length):
    """The form of a run, which is equal for equal runs: its templates, and
    where their operands come from."""
    inside = {s.name: i for i, s in
              enumerate(statements[start:start + length])}
    outside: dict[str, int] = {}
    form = []
    for s in statements[start:start + length]:
        sources = []
        for operand in s.operands:
            if operand in inside:
                sources.append(("in", inside[operand]))
            else:
                sources.append(("out", outside.setdefault(operand,
                                                          len(outside))))
        form.append((s.head, s.template, tuple(sources)))
    return tuple(form), list(outside)


def _best_run(statements: list[Statement]):
    """The starts and the length of the runs that save most lines."""
    keys = [None if s.alone else (s.head, s.template) for s in statements]
    count = len(keys)
    # Length of the common run of templates that begins at two places.
    following = [0] * (count + 1)
    candidates: set[tuple[int, int]] = set()
    for i in range(count - 1, -1, -1):
        current = [0] * (count + 1)
        for j in range(count - 1, i, -1):
            if keys[i] is not None and keys[i] == keys[j]:
                length = min(following[j + 1] + 1, j - i, _LONGEST)
                current[j] = length
                if length >= _SHORTEST:
                    candidates.add((i, length))
        following = current
    best, saved = None, 0
    for start, longest in sorted(candidates, key=lambda c: (-c[1], c[0]))[:200]:
        for length in range(longest, _SHORTEST - 1, -1):
            if length * (count // length) <= saved:
                break
            starts = _occurrences(statements, keys, start, length)
            gain = (len(starts) - 1) * length - len(starts)
            if len(starts) > 1 and gain > saved:
                best, saved = (starts, length), gain
                break
    return best


def _occurrences(statements, keys, start, length):
    form, _ = _shape_of_run(statements, start, length)
    pattern = keys[start:start + length]
    starts, at = [start], start + length
    while at + length <= len(keys):
        if keys[at:at + length] == pattern and _shape_of_run(
                statements, at, length)[0] == form:
            starts.append(at)
            at += length
        else:
            at += 1
    return starts


def _results(statements, starts, length, tail=frozenset()):
    """The statements of a run, by number, that others read."""
    wanted: set[int] = set()
    for start in starts:
        inside = {s.name: i for i, s in
                  enumerate(statements[start:start + length])}
        others = statements[:start] + statements[start + length:]
        used = set(tail)
        for s in others:
            used.update(s.operands)
            if s.alone:
                used |= words([s.template])
        wanted |= {i for name, i in inside.items() if name in used}
    return sorted(wanted) or [length - 1]


def _fold(body: Body, starts, length, names: Names, tail) -> list[str]:
    statements = body.statements
    wanted = _results(statements, starts, length, tail)
    first = statements[starts[0]:starts[0] + length]
    _, operands = _shape_of_run(statements, starts[0], length)
    letter = next(c for c in ("x", "v", "arg", "operand") if not any(
        s.name.rstrip("0123456789") == c for s in first))
    parameters = {o: f"{letter}{i}" if len(operands) > 1 else letter
                  for i, o in enumerate(operands)}
    name = names.new(_title(first))
    lines = [f"/// {_place(first[0])} and where it repeats.",
             f"def {name}({', '.join(parameters.values())})", "{"]
    last = length - 1
    for i, s in enumerate(first):
        renamed = Statement(s.name, s.template,
                            tuple(parameters.get(o, o) for o in s.operands),
                            s.head)
        if i == last and wanted == [last] and not s.head:
            text = renamed.lines("  ")
            lines += [text[0].replace(f"let {s.name} = ", "", 1), *text[1:]]
        else:
            lines += renamed.lines("  ")
    if wanted != [last]:
        lines.append("  " + ("(" + ", ".join(
            f"{first[i].name} = {first[i].name}" for i in wanted) + ")"
            if len(wanted) > 1 else first[wanted[0]].name))
    elif first[last].head:
        lines.append(f"  {first[last].name}")
    lines += ["}", ""]
    replaced: list[Statement] = []
    at = 0
    while at < len(statements):
        if at not in starts:
            replaced.append(statements[at])
            at += 1
            continue
        run = statements[at:at + length]
        _, given = _shape_of_run(statements, at, length)
        places = ", ".join(f"{{{i}}}" for i in range(len(given)))
        call = f"{name}({places})"
        if len(wanted) == 1:
            replaced.append(Statement(run[wanted[0]].name, call,
                                      tuple(given), "", run[0].place))
        else:
            record = names.new(name)
            replaced.append(Statement(record, call, tuple(given), "",
                                      run[0].place))
            for i in wanted:
                replaced.append(Statement(run[i].name,
                                          f"{{0}}.{first[i].name}",
                                          (record,), "", run[i].place))
        at += length
    body.statements = replaced
    return lines


def _title(run: list[Statement]) -> str:
    """A name for a run: the part of their paths that most of its nodes
    share, the last one of those."""
    counts: dict[str, int] = {}
    for s in run:
        for part in [p for p in re.split(r"[/.]", s.place) if p][:-1]:
            part = re.sub(r"_?\d+$", "", part)
            counts[part] = counts.get(part, 0) + 1
    shared = [p for p, n in counts.items() if p and 3 * n >= 2 * len(run)]
    return shared[-1] if shared else f"block_of_{run[0].name}"


def _place(statement: Statement) -> str:
    return f"`{statement.place}`" if statement.place else "A block"
