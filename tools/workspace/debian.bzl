"""The libraries that come from Debian, each under its upstream labels."""

load("//tools/workspace:pkg_config.bzl", "pkg_config_repository")

def abseil_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libabsl-dev",
        headers = ["absl"],
        minimum_version = "20220623",
        modules = {
            "absl/algorithm:container": "absl_algorithm_container",
            "absl/base:base": "absl_base",
            "absl/base:core_headers": "absl_core_headers",
            "absl/base:log_severity": "absl_log_severity",
            "absl/cleanup:cleanup": "absl_cleanup",
            "absl/container:btree": "absl_btree",
            "absl/container:fixed_array": "absl_fixed_array",
            "absl/container:flat_hash_map": "absl_flat_hash_map",
            "absl/container:flat_hash_set": "absl_flat_hash_set",
            "absl/container:inlined_vector": "absl_inlined_vector",
            "absl/container:node_hash_map": "absl_node_hash_map",
            "absl/container:node_hash_set": "absl_node_hash_set",
            "absl/debugging:failure_signal_handler": "absl_failure_signal_handler",
            "absl/debugging:stacktrace": "absl_stacktrace",
            "absl/debugging:symbolize": "absl_symbolize",
            "absl/flags:flag": "absl_flags",
            "absl/flags:parse": "absl_flags_parse",
            "absl/flags:usage": "absl_flags_usage",
            "absl/functional:any_invocable": "absl_any_invocable",
            "absl/functional:bind_front": "absl_bind_front",
            "absl/functional:function_ref": "absl_function_ref",
            "absl/hash:hash": "absl_hash",
            "absl/memory:memory": "absl_memory",
            "absl/meta:type_traits": "absl_type_traits",
            "absl/numeric:bits": "absl_bits",
            "absl/numeric:int128": "absl_int128",
            "absl/random:random": "absl_random_random",
            "absl/status:status": "absl_status",
            "absl/status:statusor": "absl_statusor",
            "absl/strings:cord": "absl_cord",
            "absl/strings:str_format": "absl_str_format",
            "absl/strings:strings": "absl_strings",
            "absl/synchronization:synchronization": "absl_synchronization",
            "absl/time:time": "absl_time",
            "absl/types:optional": "absl_optional",
            "absl/types:span": "absl_span",
            "absl/types:variant": "absl_variant",
            "absl/utility:utility": "absl_utility",
        },
    )

def cli11_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libcli11-dev",
        headers = ["CLI"],
        minimum_version = "2.1",
        modules = {":cli11": "CLI11"},
    )

def dlpack_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libdlpack-dev",
        headers = ["dlpack"],
        modules = {":dlpack": ""},
    )

def gmp_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libgmp-dev",
        headers = ["gmp.h", "gmpxx.h"],
        minimum_version = "6.2",
        modules = {
            ":gmp": "gmp",
            ":gmpxx": "gmpxx",
        },
    )

def google_benchmark_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libbenchmark-dev",
        headers = ["benchmark"],
        modules = {":benchmark": "benchmark"},
    )

def googletest_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libgmock-dev libgtest-dev",
        headers = ["gtest", "gmock"],
        modules = {
            ":gtest": "gmock",
            ":gtest_main": "gmock_main",
        },
    )

# The static library: what links it needs no package where it runs.
def jemalloc_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libjemalloc-dev",
        headers = ["jemalloc"],
        modules = {":jemalloc": ""},
        linkopts = ["-l:libjemalloc_pic.a"],
    )

def lemon_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "liblemon-dev",
        headers = ["lemon"],
        minimum_version = "1.3",
        modules = {":lemon": "lemon"},
    )

# libmpfi-dev has no pkg-config module. The static library is small, and what
# links it needs no package where it runs.
def mpfi_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libmpfi-dev",
        headers = ["mpfi.h"],
        modules = {":mpfi": ""},
        linkopts = ["-l:libmpfi.a"],
        deps = ["@mpfr"],
    )

def mpfr_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libmpfr-dev",
        headers = ["mpfr.h", "mpf2mpfr.h"],
        minimum_version = "4.2",
        modules = {":mpfr": "mpfr"},
        # mpfr.h includes gmp.h.
        deps = ["@gmp"],
    )

def nettle_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "nettle-dev",
        headers = ["nettle"],
        minimum_version = "3.8",
        modules = {":nettle": "nettle"},
    )

def nlohmann_json_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "nlohmann-json3-dev",
        headers = ["nlohmann"],
        minimum_version = "3.11",
        modules = {":json": "nlohmann_json"},
    )

# The headers of Debian 12's Python, in include/python3.11. Code that is
# compiled for the limited API of 3.11 runs with later ones.
def python_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libpython3-dev",
        headers = ["python3.11"],
        modules = {":python": ""},
    )

def xxhash_repository(name):
    pkg_config_repository(
        name = name,
        debian_package = "libxxhash-dev",
        # xxhash.h may include xxh3.h.
        headers = ["xxhash.h", "xxh3.h"],
        minimum_version = "0.8",
        modules = {":xxhash": "libxxhash"},
    )
