"""C++ rules with the project's warnings."""

COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
]

def cleave_cc_library(name, copts = [], **kwargs):
    native.cc_library(name = name, copts = COPTS + copts, **kwargs)

def cleave_cc_binary(name, copts = [], **kwargs):
    native.cc_binary(name = name, copts = COPTS + copts, **kwargs)

def cleave_cc_test(name, deps = [], copts = [], size = "small", **kwargs):
    """A GoogleTest program; gtest, gmock and their main are linked in."""
    native.cc_test(
        name = name,
        size = size,
        copts = COPTS + copts,
        deps = deps + [
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
    deps = deps + ["@com_github_google_benchmark//:benchmark"]
    native.cc_binary(
        name = name,
        copts = COPTS + copts,
        deps = deps,
        **kwargs
    )
    native.cc_test(
        name = name + "_dry_run",
        size = "small",
        args = ["--benchmark_min_time=0.001"] + args,
        copts = COPTS + copts,
        tags = ["benchmark"],
        deps = deps,
        **kwargs
    )
