"""C++ rules with the project's warnings."""

COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
]

_COMMON = str(Label("//tools/precompiled:common"))

def _copts(copts):
    """The project's, with the precompiled header in front of each file."""
    repository = native.repository_name()[1:]
    root = "$(BINDIR)/" + ("external/%s/" % repository if repository else "")
    header = root + "tools/precompiled/common.h"
    return COPTS + select({
        str(Label("//tools/precompiled:off")): [],
        "//conditions:default": ["-include", header],
    }) + copts

def cleave_cc_library(name, copts = [], deps = [], **kwargs):
    native.cc_library(
        name = name,
        copts = _copts(copts),
        deps = deps + [_COMMON],
        **kwargs
    )

def cleave_cc_binary(name, copts = [], deps = [], **kwargs):
    native.cc_binary(
        name = name,
        copts = _copts(copts),
        deps = deps + [_COMMON],
        **kwargs
    )

def cleave_cc_test(name, deps = [], copts = [], size = "small", **kwargs):
    """A GoogleTest program; gtest, gmock and their main are linked in."""
    native.cc_test(
        name = name,
        size = size,
        copts = _copts(copts),
        deps = deps + [
            _COMMON,
            "@com_google_googletest//:gtest",
            "@com_google_googletest//:gtest_main",
        ],
        **kwargs
    )

def cleave_cc_benchmark(name, args = [], copts = [], deps = [], **kwargs):
    """A google-benchmark program, and name_dry_run, a short run of it as a test.

    Args:
      args: of the dry run; they choose sizes that take seconds at most.
    """
    deps = deps + [_COMMON, "@com_github_google_benchmark//:benchmark"]
    native.cc_binary(
        name = name,
        copts = _copts(copts),
        deps = deps,
        **kwargs
    )
    native.cc_test(
        name = name + "_dry_run",
        size = "small",
        args = ["--benchmark_min_time=0.001"] + args,
        copts = _copts(copts),
        tags = ["benchmark"],
        deps = deps,
        **kwargs
    )
