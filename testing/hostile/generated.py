"""Hostile files that are too long or too regular to be written by hand.

`files()` gives {NAME: text or bytes}. As in the files beside this one, the last
lines say what each has to be answered; where a file can have no comments,
NAME.expect says it.
"""

DEPTH = 5000  # of nested brackets, where one level is one character or a few


def op(name, body, signature="x: f32[n]"):
    return f"op {name}({signature}) -> f32[n]\n  = {body}\n\n"


def fn(name, body):
    return f"fn {name}(x: f32[n]) -> f32[n]\n  = {body}\n\n"


def chain(item, count, last):
    """item(i) for i below count, each of which needs the next, and the last."""
    return "".join(item(i) for i in range(count)) + last


def twice(i):
    return op(f"e{i}", f"e{i + 1}(e{i + 1}(x))")


def nested():
    """{NAME: expression} of syntax within itself."""
    n = DEPTH
    return {
        "calls": "exp(" * n + "x" + ")" * n,
        "coalesce": " ?? ".join(["x"] * n),
        "comprehensions": "reshape(x, shape: " + "[i for i in " * n + "[n]"
                          + "]" * n + ")",
        "if": "if true then x else " * n + "x",
        "lists": "reshape(x, shape: " + "[" * n + "n" + "]" * n + ")",
        "members": "x" + ".y" * n,
        "parentheses": "(" * n + "x" + ")" * n,
        "power": "x" + "^2" * n,
        "records": "(y = " * n + "x" + ")" * n,
        "regions": "scan(a = x) over t in x { (a = " * 300 + "x"
                   + ") }.a" * 300,
        "subscripts": "x" + "[0]" * n,
        "sum": " + ".join(["x"] * n),
        "unary": "-" * n + "x",
    }


def syntax():
    for name, expression in nested().items():
        yield f"deep_{name}", fn("f", expression), ["check: nests at most"]
    yield ("deep_conditions",
           f'op f(x: f32[n]) -> f32[n]\n  error value "no" if {"not " * DEPTH}'
           "true\n  = x\n", ["check: nests at most"])
    yield "long_number", fn("f", "x * " + "9" * DEPTH), [
        "check: a number has at most"]
    yield "long_string", (
        'op f(x: f32[n]) -> f32[n]\n  error value "' + "a" * 100000
        + '" if n == 0\n  = x\n'), ["check: "]
    yield "long_name", fn("f" * 100000, "x"), ["check: "]
    yield "wide_list", fn("f", "x * sum([" + ", ".join(["1"] * 20000) + "])"), [
        "check: a list may have 4096 elements"]
    yield "wide_record", (
        "fn f(x: f32[n]) -> ("
        + ", ".join(f"y{i}: f32[n]" for i in range(2000)) + ")\n  = ("
        + ", ".join(f"y{i} = x" for i in range(2000)) + ")\n"), [
            "check: nothing to check"]
    yield "many_attributes", op(
        "f", "x" + "".join(f" + (if a{i} then 1 else 0)" for i in range(150)),
        "x: f32[n], *, " + ", ".join(f"a{i}: bool = false"
                                     for i in range(1000))), ["check: "]
    yield "many_items", "".join(fn(f"f{i}", "x") for i in range(3000)), [
        "check: nothing to check"]
    yield "einsum_many", (
        "op f(xs[i]: T[S[i]..], *, equation: str) -> T[P.out..]\n"
        "  where T: float\n  let P = einsum_plan(equation, S)\n"
        "  = einsum(xs, equation: equation)\n\n"
        "op einsum(xs[i]: T[S[i]..], *, equation: str) -> T[P.out..]\n"
        "  where T: float\n  let P = einsum_plan(equation, S)\n  = xs[0]\n\n"
        'example f([[1.0]], equation: "' + "a" * 10000 + '->") = [1.0]\n'), [
            "check: "]


def lets():
    names = ["x"] + [f"v{i}" for i in range(1, 5001)]
    yield "long_lets", (
        "fn f(x: f32[n]) -> f32[n]\n{\n"
        + "".join(f"  let {b} = {a} + 1\n" for a, b in zip(names, names[1:]))
        + "  v5000\n}\n"), ["check: nothing to check", "expand f: return y"]
    yield "long_let_dims", (
        "fn f(x: f32[n]) -> f32[n]\n{\n  let d0 = n\n"
        + "".join(f"  let d{i + 1} = d{i} * (d{i} + 1)\n" for i in range(60))
        + "  x * d60\n}\n"), ["check: "]


def chains():
    """Items that need the next one, once."""
    start = fn("f", "e0(x)")
    yield "def_chain", chain(lambda i: f"def e{i}(x) = e{i + 1}(x) + 1\n\n",
                             3000, "def e3000(x) = x\n\n") + start, [
        "check: defs are nested deeper than 100"]
    yield "deep_defs", chain(
        lambda i: f"def e{i}(x) = {'(' * 90}e{i + 1}(x){' + 1)' * 90}\n\n", 99,
        "def e99(x) = x\n\n") + start, ["expand f: return y"]
    yield "op_chain", chain(lambda i: op(f"e{i}", f"e{i + 1}(x)"), 1500,
                            "jvp mul(a, b) = da * b + a * db\n\n"
                            "jvp add(a, b) = da + db\n\n"
                            + op("e1500", "x * x")) + start, [
                                "expand f: mul", "jvp f: mul", "vjp f: mul",
                                "check --op e1490: 0 disagree", "only these"]
    yield "large_cycle", chain(
        lambda i: f"def e{i}(x) = e{(i + 1) % 2000}(x)\n\n", 2000, ""), [
            "check: a def must not call itself"]


def doublings():
    """Items that need the next one twice, and so the last one 2^40 times."""
    start = fn("f", "e0(x)")
    yield "doubling_defs", chain(
        lambda i: f"def e{i}(x) = e{i + 1}(e{i + 1}(x))\n\n", 40,
        "def e40(x) = x * x + 1\n\n") + start, [
            "check: more than 2000000 expressions of rules in "
            "`f` -> `e0` -> `e1` -> `e2` -> .. (", "only these"]
    ops = chain(twice, 40, op("e40", "x * x + 1"))
    yield "doubling_ops", ops + start, [
        "expand f: more than 4000000 nodes in `e0` -> `e1`",
        "check --seconds 0.2: ", "only these"]
    attribute = "x: f32[n], *, k: int = 0"
    yield "doubling_attributes", chain(
        lambda i: op(f"e{i}", f"e{i + 1}(x, k: 2 * k) + "
                     f"e{i + 1}(x, k: 2 * k + 1)", attribute), 40,
        op("e40", "x * k", attribute)) + start, [
            "expand f: more than 10000 compiled bodies in `e0` -> `e1`",
            "check --op e0: more than", "only these"]
    yield "derivative_of_doubling", (
        ops + "jvp mul(a, b) = da * b + a * db\n\n"
        "jvp add(a, b) = da + db\n\n" + op("d", "jvp e0(x)(x)")
        + fn("f", "d(x)")), ["expand f: more than", "only these"]
    scalar = ops.replace("f32[n]", "f32[]")
    numeric = "numeric exp(x: f32) within 1 ulp\n  = e0(x)\n"
    yield "numeric_doubling", scalar + numeric, [
        "check: a numeric has at most 10000 operations", "only these"]
    sums = chain(
        lambda i: op(f"e{i}", f"e{i + 1}(x) + g{i + 1}(x)")
        + op(f"g{i}", f"e{i + 1}(x) + g{i + 1}(x)"), 40,
        op("e40", "x + 1") + op("g40", "x + 1"))
    yield "numeric_hidden_doubling", sums.replace("f32[n]", "f32[]") + numeric, [
        "check: more than", "only these"]
    for name, body in (("second_order", "jvp g{0}(x)(g{0}(x)) * g{0}(x)"),
                       ("vjp_tower", "vjp g{0}(x)(g{0}(x)).x * g{0}(x)")):
        yield name, (
            op("g0", "x * x")
            + "".join(op(f"g{i + 1}", body.format(i)) for i in range(14))
            + fn("f", "g14(x)")), ["expand f: ", "only these"]


def files():
    made = {}
    for group in (syntax, lets, chains, doublings):
        for name, text, expect in group():
            made[f"{name}.rules"] = "language 1\n\n" + text + "\n" + "".join(
                f"// {line}\n" for line in expect)
    made["many_diagnostics.rules"] = "language 1\n\n" + "op (\n" * 20000
    made["many_diagnostics.rules.expect"] = "check: error\n"
    made["deep.json"] = "[" * 100000
    made["deep.json.expect"] = "check: brackets nest at most\n"
    made["deep_objects.json"] = (
        '{"language": 1, "entries": [{"kind": "op", "name": ' + '{"a": ' * 2000
        + "1" + "}" * 2000 + "}]}")
    made["deep_objects.json.expect"] = "check: nest at most\n"
    return made
