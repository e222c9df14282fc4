"""How primitives that are not pointwise are printed: a mixin of GraphPrinter.

A method `print_OP(node, types)` returns the expression of the node's value, or
stores its values and returns None.
"""

from __future__ import annotations

from cleave.torch.graph_text import Type, size_variables


def _letters(count: int):
    return "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count]


class StructuredPrinter:
    """The methods for movement, reductions, scans, indexing and control."""

    def _value(self, type: Type, text: str, is_number: bool = False):
        from cleave.torch.printer import _Value
        return _Value(type, text, is_number)

    # -- movement -----------------------------------------------------------

    def print_broadcast_in_dim(self, node, types):
        x = self.operand(node, 0)
        if x.is_number:
            self.values[node["node"]] = self._value(types[0], x.text, True)
            return None
        axes = self.axes(node)
        shape = self.size_list(types[0].shape)
        rank = types[0].rank
        if axes == list(range(rank - len(axes), rank)):
            return f"{x.text}.expand({shape})"
        return f"helpers.broadcast({x.text}, {shape}, {axes})"

    def print_reshape(self, node, types):
        x = self.operand(node, 0)
        if x.is_number:
            self.values[node["node"]] = self._value(types[0], x.text, True)
            return None
        return f"{x.text}.reshape({self.size_list(types[0].shape)})"

    def print_transpose(self, node, types):
        x = self.operands(node)[0]
        return f"{x}.permute({self.axes(node)})"

    def print_slice(self, node, types):
        x = self.operands(node)[0]
        starts = self.attribute(node, "start")
        sizes = self.attribute(node, "size")
        strides = [int(s) for s in self.attribute(node, "stride")]
        shape = self.operand(node, 0).type.shape
        parts = []
        for start, size, stride, extent in zip(starts, sizes, strides, shape):
            if start == "0" and size == extent and stride == 1:
                parts.append(":")
            elif start == "0" and stride == 1:
                parts.append(f":{self.size(size)}")
            else:
                begin, count = self.size(start), self.size(size)
                end = f"{begin} + {count}" if stride == 1 else \
                    f"{begin} + ({count}) * {stride}"
                step = "" if stride == 1 else f":{stride}"
                parts.append(f"{begin}:{end}{step}")
        return f"{x}[{', '.join(parts)}]" if parts else x

    def print_reverse(self, node, types):
        return f"{self.operands(node)[0]}.flip({self.axes(node)})"

    def print_pad_general(self, node, types):
        x = self.tensor(self.operand(node, 0), True)
        fill = self.operand(node, 1)
        low, high, interior = (self.size_list(self.attribute(node, name))
                               for name in ("low", "high", "interior"))
        return f"helpers.pad({x}, {fill.text}, {low}, {high}, {interior})"

    def print_concatenate(self, node, types):
        axis = int(self.attribute(node, "axis"))
        return f"torch.cat([{', '.join(self.operands(node))}], {axis})"

    def _window_lists(self, node):
        return ", ".join(self.size_list(self.attribute(node, name)) for name in
                         ("sizes", "strides", "dilations", "low", "counts"))

    def print_windows(self, node, types):
        x = self.tensor(self.operand(node, 0), True)
        fill = self.tensor(self.operand(node, 1))
        return f"helpers.windows({x}, {fill}, {self._window_lists(node)})"

    def print_windows_add(self, node, types):
        u = self.operands(node)[0]
        shape = self.size_list(self.attribute(node, "shape"))
        return f"helpers.windows_add({u}, {self._window_lists(node)}, {shape})"

    # -- reductions ---------------------------------------------------------

    def print_reduce_sum(self, node, types):
        x, axes = self.operands(node)[0], self.axes(node)
        if not axes:
            self.values[node["node"]] = self._value(types[0], x)
            return None
        # Sums of narrow integers would become wider.
        integer = types[0].dtype[0] in "iu"
        dtype = f", dtype={self.dtype(types[0].dtype)}" if integer else ""
        return f"torch.sum({x}, {axes}{dtype})"

    def print_reduce_prod(self, node, types):
        return f"helpers.reduce_prod({self.operands(node)[0]}, " \
               f"{self.axes(node)})"

    def _print_extremum(self, node, types):
        tie = self.attribute(node, "tie", "even")
        return f"helpers.{node['op']}({self.operands(node)[0]}, " \
               f"{self.axes(node)}, \"{tie}\")"

    print_reduce_max = _print_extremum
    print_reduce_min = _print_extremum

    def _print_reduction(self, node, types):
        return f"helpers.{node['op']}({self.operands(node)[0]}, " \
               f"{self.axes(node)})"

    print_reduce_all = _print_reduction
    print_reduce_any = _print_reduction
    print_argmax = _print_reduction
    print_argmin = _print_reduction

    # -- contractions -------------------------------------------------------

    def print_dot_general(self, node, types):
        a, b = self.operands(node)
        ranks = [self.operand(node, k).type.rank for k in range(2)]
        if sum(ranks) > 52:
            raise self.fail(node, "more than 52 axes")
        batch_a, batch_b, contract_a, contract_b = (
            self.axes(node, name) for name in
            ("batch_a", "batch_b", "contract_a", "contract_b"))
        letters_a = list(_letters(ranks[0]))
        letters_b = list(_letters(sum(ranks))[ranks[0]:])
        for d, e in zip(batch_a + contract_a, batch_b + contract_b):
            letters_b[e] = letters_a[d]
        free_a = [x for d, x in enumerate(letters_a)
                  if d not in batch_a + contract_a]
        free_b = [x for d, x in enumerate(letters_b)
                  if d not in batch_b + contract_b]
        result = [letters_a[d] for d in batch_a] + free_a + free_b
        equation = f"{''.join(letters_a)},{''.join(letters_b)}->" \
                   f"{''.join(result)}"
        return f"torch.einsum(\"{equation}\", {a}, {b})"

    def print_conv(self, node, types):
        if types[0].dtype[0] not in "fbc":
            raise self.fail(node, "PyTorch convolves floats alone")
        if types[0].rank > 5:
            raise self.fail(node, "more than three spatial axes")
        lists = ", ".join(self.size_list(self.attribute(node, name)) for name in
                          ("stride", "low", "high", "lhs_dilation",
                           "rhs_dilation"))
        x, w = self.operands(node)
        groups = self.attribute(node, "groups", "1")
        batch_groups = self.attribute(node, "batch_groups", "1")
        return f"helpers.conv({x}, {w}, {lists}, {groups}, {batch_groups})"

    # -- scans --------------------------------------------------------------

    def print_linear_scan(self, node, types):
        axis = int(self.attribute(node, "axis"))
        reverse = bool(self.attribute(node, "reverse", False))
        factor, init = self.operand(node, 0), self.operand(node, 2)
        b = self.tensor(self.operand(node, 1), True)
        if factor.is_number and init.is_number \
                and float(factor.text) == 1 and float(init.text) == 0:
            return f"helpers.cumulative_sum({b}, {axis}, {reverse})"
        a, y0 = self.tensor(factor, True), self.tensor(init, True)
        return f"helpers.linear_scan({a}, {b}, {y0}, {axis}, {reverse})"

    def _print_running(self, node, types):
        axis = int(self.attribute(node, "axis"))
        reverse = bool(self.attribute(node, "reverse", False))
        x = self.operands(node)[0]
        return f"helpers.{node['op']}({x}, {axis}, {reverse})"

    print_cumulative_max = _print_running
    print_cumulative_min = _print_running

    def _store(self, node, types, texts):
        self.results[node["node"]] = [
            self._value(type, text) for type, text in zip(types, texts)]
        if len(types) == 1:
            self.values[node["node"]] = self.results[node["node"]][0]

    def _names(self, node, types):
        return [f"{self.prefix}v{node['node']}_{k}" for k in range(len(types))]

    def print_sort(self, node, types):
        axis = int(self.attribute(node, "axis"))
        descending = bool(self.attribute(node, "descending", False))
        names = self._names(node, types)
        self.emit(f"{', '.join(names)} = helpers.sort("
                  f"{self.operands(node)[0]}, {axis}, {descending})")
        self._store(node, types, names)

    # -- indexing -----------------------------------------------------------

    def print_gather(self, node, types):
        x, index = (self.tensor(self.operand(node, k), True) for k in range(2))
        mode = self.attribute(node, "mode", "error")
        fill = "None" if mode == "error" else self.tensor(self.operand(node, 2))
        return f"helpers.gather({x}, {index}, {fill}, {self.axes(node)}, " \
               f"{self.attribute(node, 'batch', '0')}, \"{mode}\")"

    def print_scatter(self, node, types):
        x, index, updates = self.operands(node)
        mode = self.attribute(node, "mode", "set")
        tie = self.attribute(node, "tie", "even")
        return f"helpers.scatter({x}, {index}, {updates}, {self.axes(node)}, " \
               f"{self.attribute(node, 'batch', '0')}, \"{mode}\", \"{tie}\")"

    def print_nonzero(self, node, types):
        name = f"{self.prefix}v{node['node']}"
        self.emit(f"{name} = torch.nonzero({self.operands(node)[0]})")
        size = self.attribute(node, "size")
        text = str(size)
        if size_variables(text) == [text] and text not in self.sizes:
            self.sizes[text] = f"{name}_size"
            self.emit(f"{name}_size = {name}.shape[0]")
        else:
            self.emit(f"torch._check({name}.shape[0] == {self.size(text)})")
        self.values[node["node"]] = self._value(types[0], name)

    # -- randomness ---------------------------------------------------------

    def _print_random(self, node, types):
        shape = self.size_list(self.attribute(node, "shape"))
        return f"helpers.{node['op']}({self.operands(node)[0]}, {shape}, " \
               f"{self.dtype(types[0].dtype)})"

    print_random_bits = _print_random
    print_random_uniform = _print_random

    def print_random_split(self, node, types):
        count = self.size(self.attribute(node, "count"))
        return f"helpers.random_split({self.operands(node)[0]}, {count})"

    def print_random_fold_in(self, node, types):
        key, i = self.operands(node)
        return f"helpers.random_fold_in({key}, {i})"

    # -- control ------------------------------------------------------------

    def _region(self, node, name):
        text = f"{self.prefix}{name}{node['node']}"
        self.print_region(node["attributes"][name], text)
        return text

    @staticmethod
    def _tuple(texts):
        return "(" + "".join(t + ", " for t in texts).rstrip() + ")" \
            if texts else "()"

    def print_scan(self, node, types):
        body = self._region(node, "body")
        consts = int(self.attribute(node, "consts"))
        carries = int(self.attribute(node, "carries"))
        operands = self.operands(node)
        length = self.size(self.attribute(node, "length"))
        reverse = bool(self.attribute(node, "reverse", False))
        names = self._names(node, types)
        steps = f"{self.prefix}steps{node['node']}"
        self.emit(
            f"{steps} = helpers.scan({body}, "
            f"{self._tuple(operands[:consts])}, "
            f"{self._tuple(operands[consts:consts + carries])}, "
            f"{self._tuple(operands[consts + carries:])}, {length}, {reverse})")
        for k, name in enumerate(names):
            if k < carries:
                self.emit(f"{name} = {steps}[0][{k}]")
                continue
            shape = self.size_list(types[k].shape[1:])
            self.emit(f"{name} = helpers.stack({steps}[1], {k - carries}, "
                      f"{shape}, {self.dtype(types[k].dtype)}, "
                      f"{self.device()})")
        self._store(node, types, names)

    def print_cond(self, node, types):
        then, otherwise = (self._region(node, name)
                           for name in ("then", "else"))
        operands = self.operands(node)
        names = self._names(node, types)
        self.emit(f"{self._tuple(names)} = helpers.cond({operands[0]}, {then}, "
                  f"{otherwise}, {self._tuple(operands[1:])})")
        self._store(node, types, names)

    def print_while(self, node, types):
        condition, body = (self._region(node, name)
                           for name in ("cond", "body"))
        consts = int(self.attribute(node, "consts"))
        limit = self.attribute(node, "max")
        operands = self.operands(node)
        names = self._names(node, types)
        limit = "None" if limit is None else self.size(limit)
        self.emit(f"{self._tuple(names)} = helpers.while_loop({condition}, "
                  f"{body}, {self._tuple(operands[:consts])}, "
                  f"{self._tuple(operands[consts:])}, {limit})")
        self._store(node, types, names)
