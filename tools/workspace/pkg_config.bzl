"""pkg_config_repository: a Debian -dev package under its upstream Bazel labels.

`modules` maps each label that upstream's own Bazel build has to the pkg-config
module that Debian ships, so a host workspace that builds the library from
source can drop in its own repository of the same name and nothing changes. The
module "" is that of a package that has none: of headers alone, or with the
library that `linkopts` name.
"""

load("//tools/workspace:execute.bzl", "broken_library")

_HEADERS = """
cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    visibility = ["//:__subpackages__"],
    deps = {deps},
)
"""

_LIBRARY = """
cc_library(
    name = {name},
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
    deps = ["//:headers"],
)
"""

# Where Debian puts headers: most in the first, gmp.h in the second.
_INCLUDE_FOLDERS = ["/usr/include", "/usr/include/x86_64-linux-gnu"]

def _pkg_config(repo_ctx, args):
    program = repo_ctx.which("pkg-config")
    if not program:
        return None, "pkg-config: not found"
    result = repo_ctx.execute([program] + args)
    if result.return_code:
        return None, result.stderr.strip()
    return [flag for flag in result.stdout.strip().split(" ") if flag], None

def _link_options(repo_ctx, module):
    if module:
        return _pkg_config(repo_ctx, ["--libs", "{} >= {}".format(
            module,
            repo_ctx.attr.minimum_version,
        )])
    for header in repo_ctx.attr.headers:
        if not repo_ctx.path("include/" + header).exists:
            return None, header + ": not found"
    return repo_ctx.attr.linkopts, None

def _impl(repo_ctx):
    packages = {"": _HEADERS.format(deps = repr(repo_ctx.attr.deps))}
    for header in repo_ctx.attr.headers:
        for folder in _INCLUDE_FOLDERS:
            path = repo_ctx.path(folder + "/" + header)
            if path.exists:
                repo_ctx.symlink(path, "include/" + header)
                break
    for label, module in repo_ctx.attr.modules.items():
        package, name = label.split(":")
        linkopts, error = _link_options(repo_ctx, module)
        if error:
            text = broken_library(
                repo_ctx,
                package,
                name,
                "{}\nTry: apt-get install {}".format(
                    error,
                    repo_ctx.attr.debian_package,
                ),
            )
        else:
            text = _LIBRARY.format(
                name = repr(name),
                linkopts = repr(linkopts),
            )
        packages[package] = packages.get(package, "") + text
    for package, text in packages.items():
        repo_ctx.file((package + "/" if package else "") + "BUILD.bazel", text)

pkg_config_repository = repository_rule(
    implementation = _impl,
    attrs = {
        "debian_package": attr.string(mandatory = True),
        "deps": attr.string_list(),
        "headers": attr.string_list(mandatory = True),
        "linkopts": attr.string_list(),
        "minimum_version": attr.string(default = "0"),
        "modules": attr.string_dict(mandatory = True),
    },
    configure = True,
    local = True,
)
