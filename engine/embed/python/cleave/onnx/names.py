"""Names of ONNX models as names of rules.

    names = Names(reserved={"exp"})
    names.new("/encoder.0/Conv_output_0")   # "encoder_0_Conv"
    names.new("exp")                        # "exp_"
    names.new("exp")                        # "exp_2"

ONNX names are any text. Exporters write paths, of which the last parts tell
most: `short_names` keeps as many of them as tell one name from the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Words of the language.
_WORDS = frozenset(
    "if then else and or not in is for let op def fn jvp vjp vmap aten onnx "
    "rewrite numeric example override language where compute error spec "
    "special accuracy true false inf nan pi scan map cond while fold over max "
    "min sum prod argmax argmin static new key int real bool str dim dtype "
    "scalar axis axes batch".split())


def plain(text: str) -> str:
    """The text without what exporters add to the name of a node's output."""
    return re.sub(r"_output_0$|:0$", "", text)


def identifier(text: str) -> str:
    """Letters, digits and `_`, with a letter in front."""
    text = re.sub(r"\W+", "_", plain(text), flags=re.ASCII).strip("_")
    text = re.sub(r"__+", "_", text)
    if not text or not text[0].isalpha():
        text = "v" + text
    return text


def short_names(texts: Iterable[str]) -> dict[str, str]:
    """For each text its last parts, as few as tell it from the others. A node
    and its output may have one name."""
    texts = list(dict.fromkeys(plain(t) for t in texts))
    parts = {t: [p for p in re.split(r"[/]|::", t) if p] or [t] for t in texts}
    depth = {t: min(2, len(parts[t])) for t in texts}
    for _ in range(8):
        groups: dict[str, list[str]] = {}
        for t in texts:
            short = identifier("_".join(parts[t][-depth[t]:]))
            groups.setdefault(short, []).append(t)
        clashes = [t for g in groups.values() if len(g) > 1 for t in g
                   if depth[t] < len(parts[t])]
        if not clashes:
            break
        for t in clashes:
            depth[t] += 1
    return {t: identifier("_".join(parts[t][-depth[t]:])) for t in texts}


def field_name(text: str) -> str:
    """The name of a result, which only words of the language clash with."""
    name = identifier(text)
    return name + "_" if name in _WORDS else name


class Names:
    """Gives names that are free, and none twice."""

    def __init__(self, reserved: Iterable[str] = ()):
        self._used = set(reserved) | _WORDS
        self._short: dict[str, str] = {}

    def learn(self, texts: Iterable[str]) -> None:
        """The model's own names, which `new` shortens."""
        self._short = short_names(texts)

    def new(self, text: str) -> str:
        name = self._short.get(plain(text)) or identifier(text)
        # i0, i1, .. are indices, r0, r1, .. regions' sizes.
        if re.fullmatch(r"i\d+", name):
            name += "_"
        free, count = name, 1
        while free in self._used:
            count += 1
            free = f"{name}_{count}"
        self._used.add(free)
        return free
