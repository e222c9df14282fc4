"""cleave_rule_test: `cleave check` of rule files as a test.

    load("@cleave//:cleave.bzl", "cleave_rule_test")

    cleave_rule_test(
        name = "activations_test",
        srcs = ["activations.rules"],
        deps = [":shared_defs"],   # rule files that these use
        shards = 4,
    )
"""

_CHECKER = str(Label("//tools:checker"))
_KERNEL_CHECKER = str(Label("//tools:cleave_main"))

def cleave_rule_test(
        name,
        srcs,
        deps = [],
        shards = 1,
        seed = 1,
        tier = "quick",
        op = None,
        layers = [],
        allow = [],
        kernels = False,
        flags = [],
        size = "medium",
        data = [],
        tags = [],
        **kwargs):
    """Checks that the rules of srcs mean what their ops mean.

    The test fails where `cleave check` does: where anything disagrees, is
    inconclusive or not independent. A shard checks every shards-th rule. What
    is unchanged is not run again: a test for each file, and deps that are no
    larger than needed, make that much of it.

    Args:
      name: of the test.
      srcs: rule files, or filegroups of them, whose rules are checked.
      deps: rule files, or filegroups of them, that these use. They are loaded,
        and not checked. The shipped rules need not be named.
      shards: parts of the rules that are checked at once.
      seed: draws the samples.
      tier: "full" for sweeps, too: all f32 of pointwise ops of one operand, and
        all pairs of 16 bits of those of two. Minutes of processor time for each
        op: give them many shards, a size, and the tag `manual`.
      op: a glob: only ops that it matches.
      layers: only these: "L1", "examples".
      allow: verdicts in spite of which the test passes: "inconclusive",
        "not-independent".
      kernels: L6, too: each op is compiled.
      flags: more of `cleave check`: ["--dtype=f32", "--coverage"].
      size: as of any test.
      data: as of any test.
      tags: as of any test.
      **kwargs: as of any test: timeout, visibility, ..
    """
    checker = _KERNEL_CHECKER if kernels else _CHECKER
    rule_flags = ["--seed=%d" % seed, "--tier=" + tier, "--jobs=1"]
    if op:
        rule_flags.append("--op='%s'" % op)
    if layers:
        rule_flags.append("--layers=" + ",".join(layers))
    if allow:
        rule_flags.append("--allow=" + ",".join(allow))
    if kernels:
        rule_flags.append("--kernels")
    native.sh_test(
        name = name,
        size = size,
        srcs = [str(Label("//tools:rule_test"))],
        args = ["$(rootpath %s)" % checker] +
               ["$(rootpaths %s)" % src for src in srcs] + ["--"] +
               ["$(rootpaths %s)" % dep for dep in deps] + ["--"] +
               rule_flags + flags,
        data = [checker] + srcs + [dep for dep in deps if dep not in srcs] + data,
        shard_count = shards if shards > 1 else None,
        tags = tags,
        **kwargs
    )
