"""What a call costs from Python beside ctypes, nanobind and PyTorch's own ways,
at f32[4, 5], where the work itself takes some nanoseconds.

    tools/install /tmp/cleave
    tools/python --with torch -m pip install nanobind==3.1.0
    tools/python --with torch tools/benchmark/call_overheads.py /tmp/cleave

The folder is where tools/install put the header and the library, for the row of
C. Rows take turns, round by round, and each shows its least time, so that what
else runs on the machine meets all of them. `cc`, `c++` and nanobind are needed.
"""

import argparse
import ctypes
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time

import nanobind
import numpy
import torch

import cleave
import cleave.torch

C_PROGRAM = r"""
#include <cleave/cleave.h>
#include <stdio.h>
#include <time.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
int main(void) {
  cleave_rules* rules;
  cleave_graph* graph;
  cleave_kernel* kernel;
  cleave_status* status = cleave_rules_shipped(NULL, &rules);
  if (!status) status = cleave_graph_parse(rules,
      "graph (%x: f32[4, 5]) -> (y: f32[4, 5]) {\n"
      "  %1: f32[4, 5] = mul(%x, %x)\n  %2: f32[4, 5] = add(%1, %x)\n"
      "  return y = %2\n}\n", &graph);
  if (!status) status = cleave_kernel_compile(graph, NULL, NULL, &kernel);
  if (status) return puts(cleave_status_message(status)), 1;
  float x[20] = {0}, y[20];
  int64_t shape[2] = {4, 5};
  DLTensor in = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  DLTensor out = {y, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  const DLTensor* inputs = &in;
  const DLTensor* outputs = &out;
  double best = 1e9;
  for (int round = 0; round < 300; ++round) {
    const double start = now();
    for (int i = 0; i < 2000; ++i) {
      if (cleave_kernel_run(kernel, &inputs, 1, &outputs, 1, NULL)) return 1;
    }
    const double each = (now() - start) / 2000;
    if (each < best) best = each;
  }
  printf("%.1f\n", best);
  return 0;
}
"""

NANOBIND_MODULE = r"""
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
namespace nb = nanobind;
using Array = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
static void MultiplyAdd(Array x, Array y) {
  for (size_t i = 0; i < x.size(); ++i) {
    y.data()[i] = x.data()[i] * x.data()[i] + x.data()[i];
  }
}
NB_MODULE(peer, m) {
  m.def("nop", [] {});
  m.def("run", MultiplyAdd);
}
"""

OP = """language 1

op multiply_add(x: T[S..]) -> T[S..]
  where T: float
  = x * x + x
"""

ROUNDS, CALLS = 60, 1000


def run(command) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    return done.stdout


def nanoseconds_in_c(folder: pathlib.Path, prefix: pathlib.Path) -> float:
    source, program = folder / "call.c", folder / "call"
    source.write_text(C_PROGRAM)
    library = prefix / "lib"
    run(["cc", "-O2", f"-I{prefix}/include", source, f"-L{library}", "-lcleave",
         f"-Wl,-rpath,{library}", "-o", program])
    return float(run([program]))


def import_peer(folder: pathlib.Path):
    (folder / "peer.cc").write_text(NANOBIND_MODULE)
    core = pathlib.Path(nanobind.source_dir()) / "nb_combined.cpp"
    root = pathlib.Path(nanobind.include_dir())
    run(["c++", "-std=c++17", "-O2", "-DNDEBUG", "-fPIC", "-shared",
         "-fvisibility=hidden", "-fno-strict-aliasing", f"-I{root}",
         f"-I{root.parent}/ext/robin_map/include",
         f"-I{sysconfig.get_path('include')}", core, folder / "peer.cc",
         "-o", folder / "peer.so"])
    sys.path.insert(0, str(folder))
    import peer  # pylint: disable=import-error,import-outside-toplevel
    return peer


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2),
                ("ndim", ctypes.c_int32), ("dtype", ctypes.c_uint8 * 4),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


def described(array) -> DLTensor:
    """What a caller by ctypes makes of each array of each call."""
    shape = (ctypes.c_int64 * 2)(*array.shape)
    strides = (ctypes.c_int64 * 2)(5, 1)
    return DLTensor(array.ctypes.data, (1, 0), 2, (2, 32, 1, 0), shape, strides,
                    0)


class MultiplyAdd(torch.autograd.Function):
    """The least that an op of PyTorch in Python needs."""

    @staticmethod
    def forward(ctx, x):
        return x * x + x

    @staticmethod
    def backward(ctx, cotangent):
        return cotangent


@torch.library.custom_op("overheads::custom", mutates_args=())
def custom(x: torch.Tensor) -> torch.Tensor:
    return x * x + x


def python_rows(peer) -> dict:
    """Each row's function; rows of one group do the same."""
    a = numpy.random.rand(4, 5).astype(numpy.float32)
    b = numpy.empty_like(a)
    x, y = torch.rand(4, 5), torch.empty(4, 5)
    with_gradient = torch.rand(4, 5, requires_grad=True)
    rules = cleave.load(OP)
    kernel = rules.call_graph("multiply_add", ["f32[n, m]"], {}).compile()
    jitted = cleave.jit(lambda v: v * v + v)
    ns = cleave.torch.register(rules)
    library = torch.library.Library("overheads", "FRAGMENT")
    library.define("defined(Tensor x) -> Tensor")
    library.impl("defined", lambda v: v * v + v, "CPU")
    _kept.append(library)
    nop = ctypes.CDLL(None).getpagesize
    return {
        "ctypes: a function of libc without arguments": nop,
        "ctypes: the same, two DLTensors made in Python":
            lambda: (described(a), described(b), nop()),
        "nanobind: no arguments": peer.nop,
        "nanobind: NumPy in, NumPy written": lambda: peer.run(a, b),
        "nanobind: PyTorch in, PyTorch written": lambda: peer.run(x, y),
        "NumPy: x * x + x": lambda: a * a + a,
        "PyTorch: x * x + x": lambda: x * x + x,
        "PyTorch: empty_like": lambda: torch.empty_like(x),
        "PyTorch: an op by define and impl in Python":
            lambda: torch.ops.overheads.defined(x),
        "PyTorch: custom_op": lambda: custom(x),
        "PyTorch: autograd.Function": lambda: MultiplyAdd.apply(with_gradient),
        "cleave: run_into, NumPy written": lambda: kernel.run_into((a,), (b,)),
        "cleave: run_into, PyTorch written":
            lambda: kernel.run_into((x,), (y,)),
        "cleave: kernel(x), NumPy": lambda: kernel(a),
        "cleave: kernel(x), PyTorch": lambda: kernel(x),
        "cleave: jit, NumPy": lambda: jitted(a),
        "cleave: jit, PyTorch": lambda: jitted(x),
        "cleave: rules.multiply_add(x), NumPy":
            lambda: rules.multiply_add(a),
        "cleave.torch: ns.multiply_add(x)": lambda: ns.multiply_add(x),
    }


# Libraries that are kept: an op lives as long as the library that declares it.
_kept: list = []


def least_nanoseconds(rows: dict) -> dict:
    for call in rows.values():
        for _ in range(20):
            call()
    least = dict.fromkeys(rows, float("inf"))
    for _ in range(ROUNDS):
        for name, call in rows.items():
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                call()
            each = (time.perf_counter_ns() - start) / CALLS
            least[name] = min(least[name], each)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("prefix", type=pathlib.Path,
                        help="where tools/install put the C library")
    prefix = parser.parse_args().prefix
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        in_c = nanoseconds_in_c(path, prefix)
        least = least_nanoseconds(python_rows(import_peer(path)))
    print(f"{'C: cleave_kernel_run':50}{in_c:9.0f} ns")
    for name, value in least.items():
        print(f"{name:50}{value:9.0f} ns")


if __name__ == "__main__":
    main()
