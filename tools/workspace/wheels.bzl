"""wheel_repository: wheels from PyPI, by the hashes of a requirements file.

Bazel keeps what was unpacked, so that each is downloaded once.
"""

load("//tools/workspace:execute.bzl", "execute_or_fail")

def unpack_wheels(repo_ctx, requirements, folder):
    """Downloads the wheels of a requirements file and unpacks them all.

    Args:
      repo_ctx: of the repository.
      requirements: the label of the file, which pins versions and hashes.
      folder: where to unpack; "." is the repository itself.
    """
    repo_ctx.report_progress("pip download")

    # One fixed tag makes the pinned hashes the same for any Python.
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
        "--platform=manylinux_2_5_x86_64",
        "--dest=wheel",
        "--requirement",
        repo_ctx.path(requirements),
    ], timeout = 900)
    for file in repo_ctx.path("wheel").readdir():
        if file.basename.endswith(".whl"):
            execute_or_fail(repo_ctx, [
                "/usr/bin/env",
                "python3",
                "-m",
                "zipfile",
                "-e",
                file,
                folder,
            ])
    repo_ctx.delete("wheel")

def _impl(repo_ctx):
    unpack_wheels(repo_ctx, repo_ctx.attr.requirements, "wheels")
    repo_ctx.symlink(repo_ctx.attr.build_file, "BUILD.bazel")

wheel_repository = repository_rule(
    implementation = _impl,
    attrs = {
        "build_file": attr.label(mandatory = True),
        "requirements": attr.label(mandatory = True),
    },
)
