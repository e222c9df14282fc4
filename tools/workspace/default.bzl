"""Every external that the project uses, in one list."""

load(
    "//tools/workspace:debian.bzl",
    "abseil_repository",
    "cli11_repository",
    "dlpack_repository",
    "gmp_repository",
    "google_benchmark_repository",
    "googletest_repository",
    "jemalloc_repository",
    "lemon_repository",
    "mpfi_repository",
    "mpfr_repository",
    "nettle_repository",
    "nlohmann_json_repository",
    "python_repository",
    "xxhash_repository",
)
load("//tools/workspace:halide.bzl", "halide_repository")
load(
    "//tools/workspace:stubs.bzl",
    "remote_coverage_tools_repository",
    "rules_cc_repository",
)
load("//tools/workspace:wheels.bzl", "wheel_repository")

def _auditwheel_repository(name):
    wheel_repository(
        name = name,
        build_file = Label("//tools/workspace:auditwheel.BUILD"),
        requirements = Label("//tools/workspace:auditwheel_requirements.txt"),
    )

def _numpy_repository(name):
    wheel_repository(
        name = name,
        build_file = Label("//tools/workspace:numpy.BUILD"),
        requirements = Label("//tools/workspace:numpy_requirements.txt"),
    )

_REPOSITORIES = {
    "auditwheel": _auditwheel_repository,
    "cli11": cli11_repository,
    "com_github_google_benchmark": google_benchmark_repository,
    "com_google_absl": abseil_repository,
    "com_google_googletest": googletest_repository,
    "dlpack": dlpack_repository,
    "gmp": gmp_repository,
    "halide": halide_repository,
    "jemalloc": jemalloc_repository,
    "lemon": lemon_repository,
    "mpfi": mpfi_repository,
    "mpfr": mpfr_repository,
    "nettle": nettle_repository,
    "nlohmann_json": nlohmann_json_repository,
    "numpy": _numpy_repository,
    "python": python_repository,
    "remote_coverage_tools": remote_coverage_tools_repository,
    "rules_cc": rules_cc_repository,
    "xxhash": xxhash_repository,
}

# Folders that Debian's Bazel packages unpack; Bazel needs them before a build.
_LOCAL_REPOSITORIES = {
    "platforms": "/usr/share/bazel/platforms",
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
}

def add_default_workspace(excludes = []):
    """Declares the externals, but for those that a host workspace names."""
    for name, path in _LOCAL_REPOSITORIES.items():
        if name not in excludes:
            native.local_repository(name = name, path = path)
    for name, repository in _REPOSITORIES.items():
        if name not in excludes:
            repository(name = name)
