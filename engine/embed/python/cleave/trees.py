"""Trees: values in tuples, lists, dicts and named tuples.

    leaves, tree = flatten({"w": w, "layers": [a, (b, None)]})
    unflatten(tree, leaves)

None is a node without leaves; keys of dicts are in order. Two trees are equal
if their structures are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .errors import InvalidArgumentError
from .types import TensorType


class Tree(NamedTuple):
    """The structure of a value: which nodes, and where leaves are."""

    kind: Any  # None for a leaf, or the type of the node
    keys: tuple[Any, ...]  # of a dict
    children: tuple[Tree, ...]

    @property
    def count(self) -> int:
        """How many leaves it has."""
        if self.kind is None:
            return 1
        return sum(child.count for child in self.children)

    def __str__(self) -> str:
        return str(unflatten(self, [_Star()] * self.count))


class _Star:
    def __repr__(self) -> str:
        return "*"


LEAF = Tree(None, (), ())
_NONE = Tree(type(None), (), ())


def is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


def flatten(value: Any, is_leaf: Callable[[Any], bool] | None = None,
            ) -> tuple[list[Any], Tree]:
    """The leaves, in order, and the structure."""
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves, is_leaf)


def _flatten(value: Any, leaves: list[Any],
             is_leaf: Callable[[Any], bool] | None) -> Tree:
    kind = type(value)
    if kind is TensorType or (is_leaf is not None and is_leaf(value)):
        pass
    elif value is None:
        return _NONE
    elif kind in (tuple, list) or is_named_tuple(value):
        return Tree(kind, (), tuple(_flatten(v, leaves, is_leaf)
                                    for v in value))
    elif isinstance(value, dict):
        try:
            keys = tuple(sorted(value))
        except TypeError:
            keys = tuple(value)
        return Tree(dict, keys, tuple(_flatten(value[k], leaves, is_leaf)
                                      for k in keys))
    leaves.append(value)
    return LEAF


def unflatten(tree: Tree, leaves: Iterable[Any]) -> Any:
    """The value of a structure with these leaves."""
    return _unflatten(tree, iter(leaves))


def _unflatten(tree: Tree, leaves: Iterator[Any]) -> Any:
    if tree.kind is None:
        return next(leaves)
    if tree.kind is type(None):
        return None
    children = [_unflatten(child, leaves) for child in tree.children]
    if tree.kind is dict:
        return dict(zip(tree.keys, children))
    if tree.kind in (tuple, list):
        return tree.kind(children)
    return tree.kind(*children)


def map_leaves(function: Callable[..., Any], value: Any) -> Any:
    """The value with function(leaf) for each leaf."""
    leaves, tree = flatten(value)
    return unflatten(tree, [function(leaf) for leaf in leaves])


def paths(tree: Tree, start: str) -> list[str]:
    """A name for each leaf: "p.w", "p.layers.0" of the tree of `p`."""
    if tree.kind is None:
        return [start]
    keys: Sequence[Any] = range(len(tree.children))
    if tree.kind is dict:
        keys = tree.keys
    elif hasattr(tree.kind, "_fields"):
        keys = tree.kind._fields
    found: list[str] = []
    for key, child in zip(keys, tree.children):
        found += paths(child, f"{start}.{key}")
    return found


def spread(prefix: Any, tree: Tree, what: str) -> list[Any]:
    """An entry of `prefix` for each leaf of the tree.

    A number or None in `prefix` counts for all leaves below it.
    """
    if prefix is None or not isinstance(prefix, (tuple, list, dict)):
        return [prefix] * tree.count
    fits = len(prefix) == len(tree.children) and (
        tuple(sorted(prefix)) == tree.keys if isinstance(prefix, dict)
        else isinstance(tree.kind, type) and issubclass(tree.kind,
                                                        (tuple, list)))
    if not fits:
        raise InvalidArgumentError(
            f"{what} {prefix} does not fit the structure {tree}", code=3)
    entries = ([prefix[k] for k in tree.keys] if isinstance(prefix, dict)
               else prefix)
    found: list[Any] = []
    for entry, child in zip(entries, tree.children):
        found += spread(entry, child, what)
    return found


def cotangent_leaves(cotangents: Any, tree: Tree) -> list[Any]:
    """The leaves of cotangents, which have the tree of what they belong to."""
    leaves, given = flatten(cotangents)
    if given != tree:
        raise InvalidArgumentError(
            f"cotangents {given} of a function that gives {tree}", code=3)
    return leaves
