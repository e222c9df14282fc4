"""Reads the JSON of a graph: types, sizes, numbers and attributes as Python has
them.

    parse_type("f32[n, 2*m]")          # Type("f32", ("n", "2*m"))
    parse_attribute("[0, m // 2]")     # ["0", "m // 2"]
    number("0.1", "f32")               # 0.1
"""

from __future__ import annotations

import dataclasses
import fractions
import keyword
import math
import re

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_FUNCTIONS = {"min": "sym_min", "max": "sym_max"}
# Bits of the significand of floats that are narrower than Python's.
_SIGNIFICANDS = {"f16": 11, "bf16": 8, "f32": 24}


@dataclasses.dataclass(frozen=True)
class Type:
    """A dtype and the texts of the sizes."""

    dtype: str
    shape: tuple[str, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)


def split_list(text: str) -> list[str]:
    """Splits at the commas that stand in no bracket and no string."""
    parts, depth, start, quoted, skip = [], 0, 0, False, False
    for i, character in enumerate(text):
        if skip:
            skip = False
        elif quoted:
            skip = character == "\\"
            quoted = character != '"'
        elif character == '"':
            quoted = True
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + [last] if last else parts


def parse_type(text: str) -> Type:
    """`f32[n, 2*m]`, as graphs print it."""
    dtype, _, sizes = text.partition("[")
    return Type(dtype.strip(), tuple(split_list(sizes.rstrip()[:-1])))


def python_name(name: str) -> str:
    """The name as an identifier: `x.cotangent` is `x_cotangent`."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if keyword.iskeyword(name) or not name or name[0].isdigit():
        return name + "_" if name and not name[0].isdigit() else "_" + name
    return name


def size_variables(text: str) -> list[str]:
    """The variables of a size, in order, each once."""
    found = [n for n in _NAME.findall(text) if n not in _FUNCTIONS]
    return list(dict.fromkeys(found))


def python_size(text: str, names: dict[str, str] | None = None) -> str:
    """A size as a Python expression, with `names` for its variables."""
    text = text.strip()
    if text.startswith("dim(") and text.endswith(")"):
        text = text[len("dim("):-1]

    def replace(match: re.Match[str]) -> str:
        name = match.group()
        if name in _FUNCTIONS and text[match.end():match.end() + 1] == "(":
            return _FUNCTIONS[name]
        return names[name] if names and name in names else python_name(name)

    return _NAME.sub(replace, text)


def parse_attribute(value):
    """Lists become lists of texts, strings lose their quotes, `true` and
    `false` become bools; a region stays the dictionary that it is."""
    if not isinstance(value, str):
        return value
    if value.startswith("["):
        return split_list(value[1:-1])
    if value.startswith('"'):
        return value[1:-1].encode().decode("unicode_escape")
    return {"true": True, "false": False, "none": None}.get(value, value)


def _round(value: fractions.Fraction, bits: int) -> float:
    """The nearest number with so many bits, ties to even."""
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < fractions.Fraction(2) ** exponent:
        exponent -= 1
    unit = fractions.Fraction(2) ** (exponent - bits + 1)
    return float(round(value / unit) * unit)


def number(text: str, dtype: str) -> bool | int | float:
    """A constant's `value`, rounded once to the dtype."""
    if dtype == "bool":
        return {"true": True, "false": False}.get(text) \
            if text in ("true", "false") else bool(fractions.Fraction(text))
    if text.startswith("#"):
        return float.fromhex(text[1:])
    if text in ("inf", "-inf", "nan"):
        return float(text)
    exact = fractions.Fraction(text.replace(" ", ""))
    if dtype[0] in "iu" or dtype == "key":
        return int(exact)
    try:
        value = float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)
    if text.startswith("-") and value == 0:
        return -0.0
    bits = _SIGNIFICANDS.get(dtype)
    if bits is None:
        return value
    rounded = _round(exact, bits)
    # The shorter text, where the tensor's arithmetic rounds it to the same.
    if dtype == "f32" and _round(fractions.Fraction(value), bits) == rounded:
        return value
    return rounded
