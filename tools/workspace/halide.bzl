"""halide_repository: the Halide wheel from PyPI as a C++ library.

Looks, in order, at $HALIDE_ROOT (an unpacked wheel: the folder that holds
include/Halide.h) and at PyPI, where halide_requirements.txt pins version and
hash. Bazel keeps what was unpacked, so that it is downloaded once.
"""

load("//tools/workspace:execute.bzl", "execute_or_fail")

def _impl(repo_ctx):
    root = repo_ctx.os.environ.get("HALIDE_ROOT", "")
    if root:
        if not repo_ctx.path(root + "/include/Halide.h").exists:
            fail("HALIDE_ROOT={} has no include/Halide.h".format(root))
        repo_ctx.symlink(root, "halide")
    else:
        requirements = repo_ctx.path(
            Label("//tools/workspace:halide_requirements.txt"),
        )
        repo_ctx.report_progress("pip download halide")
        # The wheel's C++ library serves any Python: asking for one fixed tag
        # makes the pinned hash the same everywhere.
        execute_or_fail(repo_ctx, [
            "/usr/bin/env",
            "python3",
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--disable-pip-version-check",
            "--only-binary=:all:",
            "--require-hashes",
            "--python-version=3.11",
            "--implementation=cp",
            "--platform=manylinux_2_28_x86_64",
            "--dest=wheel",
            "--requirement",
            requirements,
        ], timeout = 900)
        wheel = [
            file
            for file in repo_ctx.path("wheel").readdir()
            if file.basename.endswith(".whl")
        ][0]
        execute_or_fail(repo_ctx, [
            "/usr/bin/env",
            "python3",
            "-m",
            "zipfile",
            "-e",
            wheel,
            ".",
        ])
        repo_ctx.delete("wheel")
    repo_ctx.symlink(Label("//tools/workspace:halide.BUILD"), "BUILD.bazel")

halide_repository = repository_rule(
    implementation = _impl,
    environ = ["HALIDE_ROOT"],
)
