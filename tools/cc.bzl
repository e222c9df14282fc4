"""C++ rules with the project's warnings and precompiled headers.

What a file starts with is one of tools/precompiled: the headers that most files
like it include, compiled once. The rules below choose by the package; a target
with other heavy headers names its own, precompiled = "json".
"""

COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
]

# For files that run for milliseconds: tests' own, the parsing of flags, the
# printing of reports. They compile a quarter faster.
# GCC 12 warns wrongly of uninitialized members where it inlines less.
SELDOM_RUN = select({
    str(Label("//tools:optimized")): ["-O1", "-Wno-maybe-uninitialized"],
    "//conditions:default": [],
})

# The packages whose files include the rule set, nearly all of them.
_OVER_RULES = [
    "testing/check",
    "testing/conformance",
    "testing/mutate",
    "tools/command",
    "tools/examples",
    "transforms",
]

def _default_header():
    package = native.package_name()
    for folder in _OVER_RULES:
        if package == folder or package.startswith(folder + "/"):
            return "rules"
    return "common"

def _unless_off(values):
    return select({
        str(Label("//tools/precompiled:off")): [],
        "//conditions:default": values,
    })

def _copts(header, copts):
    """The project's, with the precompiled header in front of each file."""
    repository = native.repository_name()[1:]
    root = "$(BINDIR)/" + ("external/%s/" % repository if repository else "")
    path = root + "tools/precompiled/%s.h" % header
    return COPTS + _unless_off(["-include", path]) + copts

def _deps(header, deps):
    label = str(Label("//tools/precompiled:common"))
    return deps + _unless_off([label.replace(":common", ":" + header)])

def cleave_cc_library(name, precompiled = None, copts = [], deps = [], **kwargs):
    header = precompiled or _default_header()
    native.cc_library(
        name = name,
        copts = _copts(header, copts),
        deps = _deps(header, deps),
        **kwargs
    )

def cleave_cc_binary(name, precompiled = None, copts = [], deps = [], **kwargs):
    header = precompiled or _default_header()
    native.cc_binary(
        name = name,
        copts = _copts(header, copts),
        deps = _deps(header, deps),
        **kwargs
    )

def cleave_cc_test(name, deps = [], copts = [], size = "small", **kwargs):
    """A GoogleTest program; gtest, gmock and their main are linked in."""
    native.cc_test(
        name = name,
        size = size,
        copts = _copts("test", SELDOM_RUN + copts),
        deps = _deps("test", deps) + [
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
    header = _default_header()
    deps = _deps(header, deps) + ["@com_github_google_benchmark//:benchmark"]
    native.cc_binary(
        name = name,
        copts = _copts(header, copts),
        deps = deps,
        **kwargs
    )
    native.cc_test(
        name = name + "_dry_run",
        size = "small",
        args = ["--benchmark_min_time=0.001"] + args,
        copts = _copts(header, copts),
        tags = ["benchmark"],
        deps = deps,
        **kwargs
    )
