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
