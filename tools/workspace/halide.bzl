"""halide_repository: the Halide wheel from PyPI as a C++ library.

Looks, in order, at $HALIDE_ROOT (an unpacked wheel: the folder that holds
include/Halide.h) and at PyPI, where halide_requirements.txt pins version and
hash. Bazel keeps what was unpacked, so that it is downloaded once.
"""

load("//tools/workspace:wheels.bzl", "unpack_wheels")

def _impl(repo_ctx):
    root = repo_ctx.os.environ.get("HALIDE_ROOT", "")
    if root:
        if not repo_ctx.path(root + "/include/Halide.h").exists:
            fail("HALIDE_ROOT={} has no include/Halide.h".format(root))
        repo_ctx.symlink(root, "halide")
    else:
        unpack_wheels(
            repo_ctx,
            Label("//tools/workspace:halide_requirements.txt"),
            ".",
        )
    repo_ctx.symlink(Label("//tools/workspace:halide.BUILD"), "BUILD.bazel")

halide_repository = repository_rule(
    implementation = _impl,
    environ = ["HALIDE_ROOT"],
)
