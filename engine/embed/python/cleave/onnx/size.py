"""Sizes with variables: what a shape of an ONNX model says before it runs.

    n = Size.variable("n")
    (2 * n * 64) // n            # 128
    str(n // 2 + 1)              # "n // 2 + 1", as rules and graphs write it
    parse("2*n + 1")             # what a graph calls a size

A Size is a polynomial with integer coefficients in variables, which are at
least 0, and in atoms: quotients, remainders, maxima and minima that do not
come out. Numbers that come out are ints, so that `isinstance(s, int)` asks
whether a size is known.
"""

from __future__ import annotations

import re

# A monomial is a sorted tuple of atom names, one of each power.
_ONE: tuple[str, ...] = ()


class Size:
    """A polynomial in named atoms. Never a plain number: see `simplified`."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[tuple[str, ...], int]):
        self.terms = terms

    @staticmethod
    def variable(name: str) -> "Size":
        return Size({(name,): 1})

    def __add__(self, other):
        terms = dict(self.terms)
        for key, value in _terms(other).items():
            terms[key] = terms.get(key, 0) + value
        return simplified(terms)

    __radd__ = __add__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + other * -1

    def __rsub__(self, other):
        return self * -1 + other

    def __mul__(self, other):
        terms: dict[tuple[str, ...], int] = {}
        for a, p in self.terms.items():
            for b, q in _terms(other).items():
                key = tuple(sorted(a + b))
                terms[key] = terms.get(key, 0) + p * q
        return simplified(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other):
        exact = quotient(self, other)
        if exact is not None:
            return exact
        return _atom(f"{_factor(self)} // {_factor(other)}")

    def __rfloordiv__(self, other):
        return _atom(f"{_factor(other)} // {_factor(self)}")

    def __mod__(self, other):
        if quotient(self, other) is not None:
            return 0
        return _atom(f"{_factor(self)} % {_factor(other)}")

    def __rmod__(self, other):
        return _atom(f"{_factor(other)} % {_factor(self)}")

    def __eq__(self, other):
        return isinstance(other, Size) and self.terms == other.terms

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(frozenset(self.terms.items()))

    def __str__(self):
        text = ""
        for key, value in sorted(self.terms.items(), key=_order):
            factors = [_bracketed(atom) for atom in key]
            if abs(value) != 1 or not factors:
                factors.insert(0, str(abs(value)))
            sign = "-" if value < 0 else "+"
            product = " * ".join(factors)
            if text:
                text += f" {sign} {product}"
            else:
                text = f"-{product}" if value < 0 else product
        return text

    __repr__ = __str__


def _order(term):
    key, _ = term
    return (-len(key), key)


def _terms(value) -> dict[tuple[str, ...], int]:
    return value.terms if isinstance(value, Size) else {_ONE: int(value)}


def simplified(terms: dict[tuple[str, ...], int]):
    """The polynomial of these terms, or the int that it is."""
    terms = {key: value for key, value in terms.items() if value != 0}
    if not terms:
        return 0
    if set(terms) == {_ONE}:
        return terms[_ONE]
    return Size(terms)


def _atom(text: str) -> Size:
    return Size({(text,): 1})


def _is_name(text: str) -> bool:
    return re.fullmatch(r"\w+|(max|min)\([^()]*\)", text) is not None


def _bracketed(atom: str) -> str:
    return atom if _is_name(atom) else f"({atom})"


def _factor(value) -> str:
    text = str(value)
    return text if _is_name(text) else f"({text})"


def quotient(a, b):
    """a / b where that is a polynomial, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b != 0 and a % b == 0 else None
    if a == b:
        return 1
    divisor = _terms(b)
    if len(divisor) == 1:
        (key, value), = divisor.items()
        terms = {}
        for k, v in _terms(a).items():
            rest = list(k)
            for atom in key:
                if atom not in rest:
                    return None
                rest.remove(atom)
            if value == 0 or v % value != 0:
                return None
            terms[tuple(rest)] = v // value
        return simplified(terms)
    # A multiple of the whole divisor: compare with the quotient of one term.
    leading = max(divisor, key=lambda k: (len(k), k))
    for k, v in _terms(a).items():
        guess = quotient(Size({k: v}) if k else v,
                         Size({leading: divisor[leading]}))
        if guess is not None and b * guess == a:
            return guess
    return None


def not_negative(value) -> bool | None:
    """Whether value >= 0 for all sizes: None where that depends on them."""
    if isinstance(value, int):
        return value >= 0
    if all(v >= 0 for v in value.terms.values()):
        return True
    if all(v <= 0 for v in value.terms.values()) and _ONE in value.terms:
        return False
    return None


def maximum(a, b):
    """The larger size."""
    known = not_negative(a - b)
    if known is not None:
        return a if known else b
    known = not_negative(b - a)
    if known is not None:
        return b if known else a
    return _atom(f"max({a}, {b})")


def minimum(a, b):
    """The smaller size."""
    known = not_negative(a - b)
    if known is not None:
        return b if known else a
    known = not_negative(b - a)
    if known is not None:
        return a if known else b
    return _atom(f"min({a}, {b})")


def parse(text):
    """The size that a type's text says, such as "2*n + 1" or 4."""
    if isinstance(text, int):
        return text

    class Names(dict):
        def __missing__(self, name):
            return Size.variable(name)

    names = Names(max=maximum, min=minimum)
    # Only arithmetic is a size: nothing else of Python is let in.
    if re.search(r"[^\w\s+\-*/%(),]|__", text):
        raise ValueError(f"this is no size: {text}")
    return eval(text, {"__builtins__": {}}, names)  # noqa: S307


def product(sizes):
    """The product of sizes: the number of elements of a shape."""
    result = 1
    for size in sizes:
        result = result * size
    return result


def broadcast(*shapes):
    """The shape that shapes broadcast to. Sizes that are not known to differ
    count as equal: the engine asks about them by a guard."""
    rank = max((len(s) for s in shapes), default=0)
    result = []
    for d in range(rank):
        found = 1
        for shape in shapes:
            at = d - rank + len(shape)
            if at < 0 or shape[at] == 1:
                continue
            size = shape[at]
            if found == 1 or (isinstance(found, Size)
                              and isinstance(size, int)):
                found = size
            elif (isinstance(found, int) and isinstance(size, int)
                  and found != size):
                raise ValueError(f"{found} and {size} do not broadcast")
        result.append(found)
    return tuple(result)
