"""Kernels on a CUDA device beside PyTorch's, on memory of the device.

    cuda_bench.py LIBRARY [--only GLOB] [--json FILE] [--open]

LIBRARY is libcleave.so; PyTorch has to see the device. Each line gives the
median time of a call in microseconds, ours and PyTorch's, the ratio (above 1 we
are ahead), the part of the copy bandwidth that ours reaches, and the largest
error of both against PyTorch in f64, in units of the largest element. Both are
timed by events on one stream, in turns. Kernels are compiled for the extents of
their inputs, or with --open for any. A case with `_vjp` is the function and the
gradients of all its inputs of floats.
"""

import argparse
import ctypes
import fnmatch
import json
import pathlib
import statistics
import sys

import torch
import torch.nn.functional as F

sys.dont_write_bytecode = True

ROUNDS = 7
BATCH_MICROSECONDS = 4000  # of calls between two events
KDL_CUDA = 2
CODES = {torch.float32: (2, 32), torch.float64: (2, 64), torch.int64: (0, 64)}


class _Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device),
                ("ndim", ctypes.c_int32), ("dtype", _DType),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Source(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("text", ctypes.c_char_p)]


class _CompileOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("device", ctypes.c_char_p)]


class _RunOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("serial", ctypes.c_int32),
                ("parallel_for", ctypes.c_void_p),
                ("parallel_context", ctypes.c_void_p),
                ("threads", ctypes.c_int32), ("allocate", ctypes.c_void_p),
                ("release", ctypes.c_void_p),
                ("allocator_context", ctypes.c_void_p),
                ("stream", ctypes.c_void_p), ("cancel", ctypes.c_void_p),
                ("report", ctypes.c_void_p)]


class Library:
    """libcleave.so."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self._library.cleave_status_message.restype = ctypes.c_char_p
        self._library.cleave_text_data.restype = ctypes.c_char_p

    def call(self, function, *arguments):
        """Calls a function; its status is an exception."""
        entry = getattr(self._library, function)
        entry.restype = ctypes.c_void_p
        status = entry(*arguments)
        if status is None:
            return
        message = self._library.cleave_status_message(ctypes.c_void_p(status))
        raise RuntimeError(message.decode())

    def made(self, function, *arguments):
        """The result of a function whose last argument is its `out`."""
        out = ctypes.c_void_p()
        self.call(function, *arguments, ctypes.byref(out))
        return out

    def text(self, handle):
        return self._library.cleave_text_data(handle).decode()


def _tensor(array):
    shape = (ctypes.c_int64 * array.dim())(*array.shape)
    code, bits = CODES[array.dtype]
    result = _Tensor(array.data_ptr(), _Device(KDL_CUDA, array.device.index),
                     array.dim(), _DType(code, bits, 1), shape, None, 0)
    result.keep = (array, shape)
    return result


class Kernel:
    """A function of functions.rules as a kernel for CUDA."""

    def __init__(self, library, rules, function, inputs, vjp, is_open):
        self._library = library
        graph = library.made("cleave_graph_of_function", rules,
                             function.encode())
        if not is_open:
            graph = self._with_extents(graph, inputs)
        if vjp:
            active = (ctypes.c_uint8 * len(inputs))(
                *[x.is_floating_point() for x in inputs])
            graph = library.made("cleave_vjp", graph, active,
                                 ctypes.c_size_t(len(inputs)), None)
        options = _CompileOptions(ctypes.sizeof(_CompileOptions), b"cuda")
        self._kernel = library.made("cleave_kernel_compile", graph,
                                    ctypes.byref(options), None)

    def _with_extents(self, graph, inputs):
        text = ctypes.c_void_p()
        self._library.call("cleave_graph_signature", graph,
                           ctypes.byref(text))
        extents = {}
        signature = json.loads(self._library.text(text))
        for described, array in zip(signature["inputs"], inputs):
            for dim, extent in zip(described["shape"], array.shape):
                if dim.isidentifier():
                    extents[dim] = extent
        names = (ctypes.c_char_p * len(extents))(
            *[name.encode() for name in extents])
        sizes = (ctypes.c_char_p * len(extents))(
            *[str(size).encode() for size in extents.values()])
        return self._library.made("cleave_graph_substitute", graph, names,
                                  sizes, ctypes.c_size_t(len(extents)))

    def bind(self, inputs, outputs):
        """A call of no arguments on these tensors."""
        sides = []
        for arrays in (inputs, outputs):
            tensors = [_tensor(array) for array in arrays]
            pointers = (ctypes.POINTER(_Tensor) * len(tensors))(
                *map(ctypes.pointer, tensors))
            pointers.keep = tensors
            sides.append(pointers)
        options = _RunOptions(ctypes.sizeof(_RunOptions))
        options.stream = torch.cuda.current_stream().cuda_stream

        def run(report=None):
            options.report = report
            self._library.call("cleave_kernel_run", self._kernel, sides[0],
                               ctypes.c_size_t(len(inputs)), sides[1],
                               ctypes.c_size_t(len(outputs)),
                               ctypes.byref(options))
        return run

    def report(self, run):
        text = ctypes.c_void_p()
        run(ctypes.cast(ctypes.pointer(text), ctypes.c_void_p))
        return json.loads(self._library.text(text))


def _normal(*shape):
    return torch.randn(*shape, device="cuda")


def _classes(rows, classes):
    return torch.randint(classes, (rows,), device="cuda")


def cases():
    """By name: our function, inputs, the same in PyTorch, and bytes moved
    (None where arithmetic limits)."""
    out = {}

    def add(name, function, inputs, torch_function, moved=None, vjp=False):
        out[name] = (function, inputs, torch_function, moved, False)
        if vjp:
            out[f"{name}_vjp"] = (function, inputs, torch_function, None, True)

    def weights(n):
        return [_normal(n), _normal(n)]

    add("add_scaled", "add_scaled_all",
        [_normal(8192, 8192), _normal(8192, 8192)],
        lambda x, y: torch.add(x, y, alpha=0.5), 3)
    for b, n in ((8192, 8192), (1021, 65537)):
        add(f"gelu_{b}x{n}", "gelu_all", [_normal(b, n)], F.gelu, 2, b == 8192)
        add(f"mish_{b}x{n}", "mish_all", [_normal(b, n)], F.mish, 2)
    add("lgamma", "lgamma_all", [_normal(8192, 8192)], torch.lgamma, 2)
    add("adam_step", "adam_step", [_normal(1 << 25) ** 2 for _ in range(4)],
        _adam_step, 7)
    for b, n in ((65536, 1024), (1048576, 32), (512, 131072), (32768, 2047),
                 (262144, 256)):
        x = _normal(b, n)
        add(f"softmax_{b}x{n}", "softmax_rows", [x],
            lambda x: F.softmax(x, 1), 2, n == 1024)
        add(f"layer_norm_{b}x{n}", "layer_norm_rows", [x, *weights(n)],
            lambda x, w, v: F.layer_norm(x, w.shape, w, v), 2, n == 1024)
        add(f"sum_axis_1_{b}x{n}", "sum_axis_1", [x], lambda x: x.sum(1), 1)
        add(f"sum_axis_0_{b}x{n}", "sum_axis_0", [x], lambda x: x.sum(0), 1)
    x = _normal(65536, 1024)
    add("rms_norm", "rms_norm_rows", [x, _normal(1024)],
        lambda x, w: F.rms_norm(x, w.shape, w, 1e-5), 2, True)
    add("log_softmax_backward", "log_softmax_backward",
        [x, F.log_softmax(_normal(65536, 1024), 1)],
        lambda g, y: torch.ops.aten._log_softmax_backward_data(
            g, y, 1, y.dtype), 3)
    add("cross_entropy", "cross_entropy_mean", [x, _classes(65536, 1024)],
        F.cross_entropy, 1, True)
    add("sum_all", "sum_all", [x], torch.sum, 1)
    add("var_axis_1", "var_axis_1", [x], lambda x: x.var(1), 1)
    add("argmax_axis_1", "argmax_axis_1", [x], lambda x: x.argmax(1).float(),
        1)
    add("transpose", "transpose_2d", [_normal(8192, 8191)],
        lambda x: x.t().contiguous(), 2)
    add("concatenate", "concatenate_rows", [x, x],
        lambda x, y: torch.cat([x, y], 1), 4)
    add("roll", "roll_rows", [x], lambda x: x.roll((100, 100), (0, 1)), 2)
    add("bilinear", "bilinear_twice", [_normal(16, 64, 64, 64)],
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), 5, True)
    add("max_pool", "max_pool_2x2", [_normal(32, 64, 112, 112)],
        lambda x: F.max_pool2d(x, 2), 1.25)
    add("embedding_sum", "embedding_sum",
        [_normal(50000, 128), _classes(8192 * 32, 50000).view(8192, 32)],
        lambda w, i: F.embedding(i, w).sum(1))
    add("cumsum_rows", "cumsum_rows", [x], lambda x: x.cumsum(1), 2)
    for n in (512, 2048, 4096):
        add(f"matmul_{n}", "matmul_2d", [_normal(n, n), _normal(n, n)],
            torch.matmul, None, n == 2048)
    add("matmul_1021x509x2047", "matmul_2d",
        [_normal(1021, 509), _normal(509, 2047)], torch.matmul)
    add("matrix_vector", "matrix_vector", [_normal(8192, 8192), _normal(8192)],
        torch.mv, 1)
    add("linear_gelu", "linear_gelu",
        [_normal(2048, 1024), _normal(4096, 1024), _normal(4096)],
        lambda x, w, b: F.gelu(F.linear(x, w, b)), None, True)
    add("matmul_batched", "matmul_batched",
        [_normal(100000, 4, 4), _normal(100000, 4, 4)], torch.bmm)
    add("convolution", "convolution_3x3",
        [_normal(32, 64, 56, 56), _normal(64, 64, 3, 3)],
        lambda x, w: F.conv2d(x, w, padding=1), None, True)
    add("convolution_1x1", "convolution_1x1",
        [_normal(32, 64, 56, 56), _normal(256, 64, 1, 1)], F.conv2d)
    add("attention", "attention", [_normal(4, 16, 1024, 64)] * 3,
        F.scaled_dot_product_attention, None, True)
    add("tiny", "softmax_rows", [_normal(16, 64)], lambda x: F.softmax(x, 1))
    return out


def _adam_step(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.001 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8), m, v


def _as_tuple(results):
    return tuple(results) if isinstance(results, tuple) else (results,)


def _with_gradients(function, inputs, cotangents):
    """The results, and the gradients of inputs of floats."""
    arrays = [x.detach().requires_grad_() if x.is_floating_point() else x
              for x in inputs]
    results = _as_tuple(function(*arrays))
    active = [x for x in arrays if x.is_floating_point()]
    return (*results, *torch.autograd.grad(results, active, cotangents))


def _time(call, count):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / count


def _count(call):
    call()
    return max(1, int(BATCH_MICROSECONDS / max(_time(call, 1), 1)))


def _error(got, truth):
    scale = truth.abs().max().item() or 1
    return ((got.double() - truth).abs().max() / scale).item()


def measure(library, rules, name, case, bandwidth, is_open):
    function, inputs, torch_function, moved, vjp = case
    if function == "attention":
        inputs = [x.clone() for x in inputs]
    kernel = Kernel(library, rules, function, inputs, vjp, is_open)

    def as_double(arrays):
        return [x.double() if x.dtype == torch.float32 else x for x in arrays]
    cotangents = []
    if vjp:
        results = _as_tuple(torch_function(*inputs))
        cotangents = [torch.randn_like(y).contiguous() for y in results]

        def compute(arrays, cotangents):
            return _with_gradients(torch_function, arrays, cotangents)
    else:
        def compute(arrays, _):
            return _as_tuple(torch_function(*arrays))
    wanted = compute(inputs, cotangents)
    truth = compute(as_double(inputs), as_double(cotangents))
    out = [torch.full_like(y, float("nan"),
                           memory_format=torch.contiguous_format)
           for y in wanted]
    ours = kernel.bind([*inputs, *cotangents], out)
    ours()
    torch.cuda.synchronize()
    record = {"name": name,
              "error": max(map(_error, out, truth)),
              "torch_error": max(map(_error, wanted, truth))}
    del truth, wanted
    steps = kernel.report(ours)["steps"]
    record["off_device"] = [s["why"] for s in steps if s["device"] != "cuda"]
    record["library_steps"] = sum(s["library"] != "" for s in steps)
    record["steps"] = [(s["kind"], s["library"], s["nanoseconds"] // 1000)
                       for s in steps]

    def theirs():
        compute(inputs, cotangents)
    counts = [_count(ours), _count(theirs)]
    times = [[], []]
    for _ in range(ROUNDS):
        for side, call in enumerate((ours, theirs)):
            times[side].append(_time(call, counts[side]))
    record["us"], record["torch_us"] = map(statistics.median, times)
    record["ratio"] = record["torch_us"] / record["us"]
    if moved is not None:
        bytes_ = inputs[0].numel() * inputs[0].element_size() * moved
        record["of_copy"] = bytes_ / record["us"] * 1e6 / bandwidth
    return record


def _copy_bandwidth():
    x = torch.empty(1 << 28, device="cuda")
    y = torch.empty_like(x)
    times = [_time(lambda: y.copy_(x), 5) for _ in range(5)]
    return 2 * x.numel() * 4 / min(times) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--only", default="*")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--open", action="store_true")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    bandwidth = _copy_bandwidth()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"copies {bandwidth / 1e12:.2f} TB/s")
    library = Library(options.library)
    text = (pathlib.Path(__file__).parent / "functions.rules").read_bytes()
    source = _Source(ctypes.sizeof(_Source), b"functions.rules", text)
    rules = library.made("cleave_rules_extend",
                         library.made("cleave_rules_shipped", None),
                         ctypes.byref(source), ctypes.c_size_t(1), None)
    records = []
    print(f"{'':28} {'us':>10} {'torch':>10} {'ratio':>6} {'copy':>5} "
          f"{'error':>8} {'torch':>8}")
    for name, case in cases().items():
        if not fnmatch.fnmatch(name, options.only):
            continue
        try:
            record = measure(library, rules, name, case, bandwidth,
                             options.open)
        except RuntimeError as error:
            record = {"name": name, "failed": str(error)}
            print(f"{name:28} failed: {str(error)[:300]}", flush=True)
            records.append(record)
            continue
        of_copy = (f"{record['of_copy']:5.2f}" if "of_copy" in record
                   else f"{'':5}")
        print(f"{name:28} {record['us']:10.1f} {record['torch_us']:10.1f} "
              f"{record['ratio']:6.2f} {of_copy} {record['error']:8.1e} "
              f"{record['torch_error']:8.1e} {len(record['steps'])} steps, "
              f"{record['library_steps']} by cuBLAS "
              f"{'; '.join(record['off_device'])}", flush=True)
        records.append(record)
        if options.json:
            options.json.write_text(json.dumps(records, indent=1) + "\n")
    return int(any("failed" in record for record in records))


if __name__ == "__main__":
    sys.exit(main())
