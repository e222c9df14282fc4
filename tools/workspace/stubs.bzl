"""Stand-ins for what Bazel 4.2 expects and Debian does not ship."""

_RULES = [
    "cc_binary",
    "cc_import",
    "cc_library",
    "cc_proto_library",
    "cc_test",
    "cc_toolchain",
    "cc_toolchain_suite",
    "objc_library",
]

def _rules_cc_impl(repo_ctx):
    repo_ctx.file("WORKSPACE", "workspace(name = \"rules_cc\")\n")
    repo_ctx.file("cc/BUILD", "")
    repo_ctx.file("cc/defs.bzl", "".join(
        ["{0} = native.{0}\n".format(rule) for rule in _RULES],
    ))

# The names that @bazel_tools loads, bound to native rules: Debian's rules_cc
# needs a newer Bazel than Debian's.
rules_cc_repository = repository_rule(implementation = _rules_cc_impl)

_COVERAGE_BUILD = """
package(default_visibility = ["//visibility:public"])

sh_binary(
    name = "coverage_report_generator",
    srcs = ["main.sh"],
)

sh_binary(
    name = "lcov_merger",
    srcs = ["main.sh"],
)

filegroup(
    name = "coverage_report_generator_files",
    srcs = ["main.sh"],
)
"""

_COVERAGE_MAIN = """#!/bin/sh
echo 'not supported: coverage needs @remote_coverage_tools' >&2
exit 1
"""

def _remote_coverage_tools_impl(repo_ctx):
    repo_ctx.file("WORKSPACE", "")
    repo_ctx.file("main.sh", _COVERAGE_MAIN, executable = True)
    repo_ctx.file("BUILD", _COVERAGE_BUILD)

# `bazel test` asks for these labels even without coverage, and would download
# them.
remote_coverage_tools_repository = repository_rule(
    implementation = _remote_coverage_tools_impl,
)
