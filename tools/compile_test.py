#!/usr/bin/python3
"""Compiles functions ahead of time, and calls them from C.

    compile_test.py CLEAVE RULES

What the libraries compute is compared with `cleave run` on the interpreter.
"""

import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

CLEAVE, RULES = (os.path.abspath(path) for path in sys.argv[1:3])

FUNCTIONS = """\
language 1

fn rows(x: f32[b, n]) -> f32[b, n] = softmax(x)

fn head(x: f32[b, k], w: f32[n, k], c: f32[n]) -> f32[b, n] = softmax(linear(x, w, c))

fn norm(x: f32[b, n], w: f32[n], c: f32[n]) -> (y: f32[b, n], mean: f32[b], rstd: f32[b]) =
  layer_norm(x, w, c, N: [n])

fn act(x: f32[m, n]) -> f32[m, n] = gelu(x)

fn layer(x: f32[b, k], w: f32[n, k], c: f32[n]) -> f32[b, n] = gelu(linear(x, w, c))

fn product(a: f64[m, k], b: f64[k, n]) -> f64[m, n] = matmul(a, b)

fn rows_of(table: f32[v, d], i: i64[n]) -> f32[n, d] = embedding(table, i)

fn pairs(x: i32[n]) -> i32[n // 2, 2] = reshape(x, shape: [n // 2, 2])

fn many(x: f16[n], keep: bool[n]) -> (x: f16[n], z: f16[n], again: f16[n]) =
  (x = x, z = select(keep, x, x * x), again = select(keep, x, x * x))

fn powers(x: f32[n], y: f32[n]) -> f32[n] = tanh(x * y) + y

fn ordered(x: f32[n]) -> f32[n] = sort(x, axis: 0, descending: false).values

fn running(xs: f32[n, b], h: f32[b]) -> (all: f32[n, b], last: f32[b])
{
  let r = scan(h = h) over x in xs {
    let next = cond(x[0] > 0) { h / 2 + x } else { h - x }
    (h = next, all = next)
  }
  (all = r.all, last = r.h)
}

fn halved(x: f32[n]) -> f32[n]
{
  let r = while(h = x) max[i](h[i]) > 1 max 3 { (h = h / 2) }
  r.h
}

fn places(x: f32[n]) -> i64[n, 1] = nonzero(x)

fn j0(x: f32[n]) -> f32[n] = x * x

fn draw(k: key) -> f32[3] = random_uniform(k, shape: [3], dtype: f32)
"""

# Codes of the header.
(OK, BAD_DIMS, TOO_LARGE, BAD_ARRAY, BAD_INDEX, OUT_OF_MEMORY,
 UNSUPPORTED_CPU) = range(7)
TOO_MANY_STEPS = 10

# safetensors' dtype -> (C, struct).
DTYPES = {
    "F32": ("float", "f"),
    "F64": ("double", "d"),
    "F16": ("uint16_t", "e"),
    "I32": ("int32_t", "i"),
    "I64": ("int64_t", "q"),
    "BOOL": ("uint8_t", "?"),
}

CC = ["cc", "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]
LIBRARIES = ["-lm", "-lpthread"]


def pack(dtype, numbers):
    return struct.pack(f"<{len(numbers)}{DTYPES[dtype][1]}", *numbers)


def unpack(dtype, data):
    code = DTYPES[dtype][1]
    return list(struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}",
                              data))


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, numbers)."""
    header, data = {}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        begin = len(data)
        data += pack(dtype, numbers)
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    return {
        name: (entry["dtype"], entry["shape"],
               unpack(entry["dtype"], data[slice(*entry["data_offsets"])]))
        for name, entry in header.items()
    }


def numbers(count, seed=1):
    draw = random.Random(seed)
    return [draw.uniform(-2, 2) for _ in range(count)]


class CompileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.write("f.rules", FUNCTIONS)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def run_program(self, *arguments, **environment):
        return subprocess.run(
            arguments,
            cwd=self.folder,
            env={**os.environ, "CLEAVE_RULES": RULES, "CLEAVE_CACHE": "",
                 **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=0.8 * float(os.environ.get("TEST_TIMEOUT", "300")),
            check=False,
        )

    def succeed(self, *arguments, **environment):
        """What it prints; nothing on stderr: compilers do not warn.

        AddressSanitizer does, of the stacks that Halide changes between.
        """
        result = self.run_program(*arguments, **environment)
        what = f"{arguments}: {result.stdout}{result.stderr}"
        self.assertEqual(result.returncode, 0, what)
        warnings = [line for line in result.stderr.splitlines()
                    if "ASan doesn't fully support makecontext" not in line]
        self.assertEqual(warnings, [], what)
        return result.stdout

    def compile(self, function, *arguments):
        """Into the folder; for each x86-64 CPU, and quickly."""
        return self.succeed(CLEAVE, "compile", "f.rules", "--fn", function,
                            "-o", ".", "--level", "sse4.1", *arguments)

    def fail_with(self, message, *arguments, **environment):
        result = self.run_program(CLEAVE, "compile", *arguments, **environment)
        what = f"{arguments}: {result.stdout}{result.stderr}"
        self.assertEqual(result.returncode, 2, what)
        self.assertEqual(result.stdout, "", what)
        self.assertIn(message, result.stderr, what)

    def build(self, name, source, *libraries, warnings=CC):
        self.write(name + ".c", source)
        self.succeed(*warnings, name + ".c", *(f"lib{l}.a" for l in libraries),
                     *LIBRARIES, "-o", name)
        return self.path(name)

    def call(self, function, dims, inputs, outputs, code=OK):
        """Calls the library from C: inputs are (dtype, numbers), outputs are
        (dtype, count)."""
        declarations, reads, writes = [], [], []
        arguments = [str(dim) for dim in dims]
        with open(self.path("in"), "wb") as file:
            for i, (dtype, values) in enumerate(inputs):
                declarations.append(f"static {DTYPES[dtype][0]} "
                                    f"in_{i}[{max(len(values), 1)}];")
                reads.append(f"  if (fread(in_{i}, sizeof in_{i}[0], "
                             f"{len(values)}, f) != {len(values)}) return 99;")
                arguments.append(f"in_{i}" if values else "0")
                file.write(pack(dtype, values))
        for i, (dtype, count) in enumerate(outputs):
            declarations.append(f"static {DTYPES[dtype][0]} "
                                f"out_{i}[{count + 1}];")
            writes.append(f"  fwrite(out_{i}, sizeof out_{i}[0], {count}, f);")
            arguments.append(f"out_{i}" if count else "0")
        program = self.build("call", "\n".join([
            "#include <stdio.h>", f'#include "{function}.h"', *declarations,
            "int main(void) {", "  int code;", '  FILE *f = fopen("in", "rb");',
            "  if (f == NULL) return 99;", *reads, "  fclose(f);",
            f"  code = {function}({', '.join(arguments)});",
            '  f = fopen("out", "wb");', "  if (f == NULL) return 99;", *writes,
            "  fclose(f);", "  return code;", "}", ""]), function)
        result = self.run_program(program)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout + result.stderr, "")
        data, results = self.read("out"), []
        for dtype, count in outputs:
            size = count * struct.calcsize(DTYPES[dtype][1])
            results.append(unpack(dtype, data[:size]))
            data = data[size:]
        return results

    def compare(self, function, dims, inputs, outputs, *arguments, name=None,
                tolerance=1e-6):
        """inputs: name -> (dtype, shape, numbers); outputs: names. The results
        of the library are those of the interpreter."""
        write_safetensors(self.path("inputs"), inputs)
        self.succeed(CLEAVE, "run", "f.rules", "--fn", function, "--input",
                     "inputs", "--output", "outputs", *arguments)
        wanted = read_safetensors(self.path("outputs"))
        got = self.call(
            name or function, dims,
            [(dtype, values) for dtype, _, values in inputs.values()],
            [(wanted[o][0], len(wanted[o][2])) for o in outputs])
        for output, results in zip(outputs, got):
            dtype, _, want = wanted[output]
            relative = {"F32": tolerance, "F64": 1e-14}.get(dtype, 0)
            for a, b in zip(results, want):
                self.assertTrue(
                    math.isclose(a, b, rel_tol=relative, abs_tol=relative)
                    or a == b, (function, dims, output, a, b))
        return got

    # The values that libraries compute.

    def test_rows_of_any_size(self):
        # With code for all CPUs, of which this one takes its own.
        out = self.succeed(CLEAVE, "compile", "f.rules", "--fn", "rows", "-o",
                           "made")
        files = ["librows.a", "rows.h", "rows_driver.c", "rows_example.c"]
        self.assertEqual(out, "".join(f"made/{f}\n" for f in files))
        self.assertEqual(sorted(os.listdir(self.path("made"))), sorted(files))
        for file in files:
            os.rename(self.path("made/" + file), self.path(file))
        for b, n in ((4, 5), (1, 1), (7, 1003)):
            (y,) = self.compare("rows", (b, n),
                                {"x": ("F32", [b, n], numbers(b * n))}, ["y"])
            for row in range(b):
                self.assertAlmostEqual(sum(y[row * n:row * n + n]), 1, 5)
        for b, n in ((0, 5), (5, 0), (0, 0)):
            self.call("rows", (b, n), [("F32", [])], [("F32", 0)])

    def test_sorts_loops_and_choices(self):
        for function in ("ordered", "running", "halved"):
            self.compile(function)
        for n in (0, 1, 5, 1003):
            self.compare("ordered", (n,), {"x": ("F32", [n], numbers(n))},
                         ["y"])
        for n, b in ((4, 3), (1, 1), (0, 2), (65, 17)):
            self.compare("running", (n, b), {
                "xs": ("F32", [n, b], numbers(n * b)),
                "h": ("F32", [b], numbers(b, 2))}, ["all", "last"])
        (y,) = self.call("halved", (2,), [("F32", [7, 2])], [("F32", 2)])
        self.assertEqual(y, [0.875, 0.25])
        self.call("halved", (2,), [("F32", [9, 2])], [("F32", 2)],
                  TOO_MANY_STEPS)

    def test_what_lies_between_kernels(self):
        self.compile("head")
        self.assertIn(b"cleave_kernels[1][2]", self.read("head_driver.c"))
        for b, k, n in ((3, 4, 5), (2, 0, 3), (65, 130, 33)):
            self.compare("head", (b, k, n), {
                "x": ("F32", [b, k], numbers(b * k)),
                "w": ("F32", [n, k], numbers(n * k, 2)),
                "c": ("F32", [n], numbers(n, 3))}, ["y"], tolerance=1e-5)
        # The room for it is refused: 512 MiB.
        program = self.build("refused", """\
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "head.h"

int main(void) {
  const int64_t b = 1 << 14, n = 1 << 13;
  const struct rlimit limit = {1u << 28, 1u << 28};
  float *x = (float *)calloc((size_t)b, 4), *w = (float *)calloc((size_t)n, 4);
  float *y = (float *)calloc((size_t)(b * n), 4);
  if (x == NULL || w == NULL || y == NULL) return 99;
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 99;
  printf("%s\\n", head_error(head(b, 1, n, x, w, w, y)));
  /* It goes on working. */
  return head(2, 1, 2, x, w, w, y);
}
""", "head")
        self.assertEqual(self.succeed(program, HL_NUM_THREADS="1"),
                         "out of memory\n")

    def test_product(self):
        self.compile("product")
        for m, k, n in ((3, 4, 5), (0, 3, 2), (70, 65, 33)):
            self.compare("product", (m, k, n), {
                "a": ("F64", [m, k], numbers(m * k)),
                "b": ("F64", [k, n], numbers(k * n, 2))}, ["y"])

    def test_layers(self):
        b, k, n = 5, 19, 37
        x, w = ("F32", [b, k], numbers(b * k)), ("F32", [n, k], numbers(n * k))
        self.compile("norm")
        self.compare("norm", (b, k), {
            "x": x, "w": ("F32", [k], numbers(k, 2)),
            "c": ("F32", [k], numbers(k, 3))}, ["y", "mean", "rstd"],
            tolerance=1e-5)
        self.compile("act")
        self.compare("act", (b, k), {"x": x}, ["y"])
        self.compile("layer")
        self.compare("layer", (b, k, n), {
            "x": x, "w": w, "c": ("F32", [n], numbers(n, 3))}, ["y"],
            tolerance=1e-5)

    def test_indices_are_checked(self):
        self.compile("rows_of")
        table = ("F32", [4, 3], numbers(12))
        self.compare("rows_of", (4, 3, 5), {
            "table": table, "i": ("I64", [5], [3, 0, 2, 2, 1])}, ["y"])
        inputs = [table[::2], ("I64", [0, 4])]
        self.call("rows_of", (4, 3, 2), inputs, [("F32", 6)], BAD_INDEX)
        inputs = [table[::2], ("I64", [-1, 0])]
        self.call("rows_of", (4, 3, 2), inputs, [("F32", 6)], BAD_INDEX)
        # No row to read, and no row that is read.
        self.call("rows_of", (0, 3, 1), [("F32", []), ("I64", [0])],
                  [("F32", 3)], BAD_INDEX)
        self.call("rows_of", (0, 3, 0), [("F32", []), ("I64", [])],
                  [("F32", 0)])
        self.call("rows_of", (4, 0, 1), [("F32", []), ("I64", [9])],
                  [("F32", 0)])

    def test_sizes_must_fit(self):
        self.compile("pairs")
        self.assertIn(b"n == 2*(n // 2)", self.read("pairs.h"))
        self.compare("pairs", (6,), {"x": ("I32", [6], [1, -2, 3, 4, 5, 6])},
                     ["y"])
        self.call("pairs", (5,), [("I32", [0] * 5)], [("I32", 4)], BAD_DIMS)
        for n in (-1, 1 << 31, -(1 << 63) + 1):
            self.call("pairs", (n,), [("I32", [0])], [("I32", 1)], BAD_DIMS)
        n = 1 << 30
        self.call("pairs", (n,), [("I32", [0])], [("I32", 1)], TOO_LARGE)

    def test_inputs_that_are_returned_and_values_that_are_twice(self):
        self.compile("many")
        # The output `x` stands beside the input.
        self.assertIn(b"uint16_t *x_2,", self.read("many.h"))
        self.compare("many", (9,), {
            "x": ("F16", [9], [0.5 * i - 2 for i in range(9)]),
            "keep": ("BOOL", [9], [i % 3 == 0 for i in range(9)])},
            ["x", "z", "again"])

    def test_tangents_over_a_batch(self):
        self.compile("powers", "--jvp", "--wrt", "x", "--vmap", "0,none",
                     "--name", "powers_jvp")
        b, n = 3, 7
        self.compare("powers", (b, n), {
            "x": ("F32", [b, n], numbers(b * n)),
            "y": ("F32", [n], numbers(n, 2)),
            "x.tangent": ("F32", [b, n], numbers(b * n, 3))},
            ["y", "y.tangent"], "--jvp", "--vmap", "0,none", name="powers_jvp")
        self.assertIn(b"const float *x_tangent", self.read("powers_jvp.h"))

    # How they are called.

    def test_arrays_of_a_call(self):
        self.compile("powers")
        program = self.build("arrays", """\
#include <stdio.h>
#include <string.h>
#include "powers.h"

int main(void) {
  float a[8], b[8], c[8], d[8];
  int i;
  for (i = 0; i < 8; ++i) a[i] = b[i] = (float)i - 3;
  if (powers(8, a, b, c) != CLEAVE_OK) return 1;
  /* In place; and where the output begins within an input. */
  memcpy(d, a, sizeof d);
  if (powers(8, d, b, d) != CLEAVE_OK || memcmp(c, d, sizeof c)) return 2;
  memcpy(d, a, sizeof d);
  if (powers(7, d, b, d + 1) != CLEAVE_OK) return 3;
  if (memcmp(c, d + 1, 7 * sizeof c[0])) return 4;
  if (powers(8, NULL, b, c) != CLEAVE_BAD_ARRAY) return 5;
  if (powers(8, a, b, NULL) != CLEAVE_BAD_ARRAY) return 6;
  if (powers(0, NULL, NULL, NULL) != CLEAVE_OK) return 7;
  for (i = CLEAVE_OK; i <= CLEAVE_INTERNAL + 1; ++i) {
    printf("%s\\n", powers_error(i));
  }
  return 0;
}
""", "powers")
        lines = self.succeed(program).splitlines()
        self.assertEqual(lines[0], "no error")
        self.assertEqual(len(set(lines)), 9)
        self.compile("many")
        self.call("many", (1,), [("F16", [1]), ("BOOL", [True])],
                  [("F16", 1)] * 3)
        overlap = self.build("overlap", """\
#include "many.h"

int main(void) {
  uint16_t x[2] = {0, 0}, y[3], z[2];
  const uint8_t keep[2] = {0, 1};
  return many(2, x, keep, y, y + 1, z);
}
""", "many")
        self.assertEqual(self.run_program(overlap).returncode, BAD_ARRAY)

    # Two libraries, and what a program has of Halide's names, know nothing of
    # each other; many threads call both. The functions' names apart, nothing is
    # visible of a library.
    def test_libraries_in_one_program(self):
        self.compile("rows")
        self.compile("head")
        for library in ("rows", "head"):
            symbols = self.succeed("nm", "-g", "--defined-only",
                                   f"lib{library}.a")
            names = [line.split()[2] for line in symbols.splitlines()
                     if len(line.split()) == 3]
            self.assertEqual(sorted(names), [library, library + "_error"])
        program = self.build("both", """\
#define _POSIX_C_SOURCE 200112L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "head.h"
#include "rows.h"

/* Not to be called. */
void halide_error(void *context, const char *message);
void *halide_malloc(void *context, size_t bytes);
int halide_do_par_for(void *context, int (*task)(void *, int, unsigned char *),
                      int min, int size, unsigned char *closure);
void halide_error(void *context, const char *message) {
  (void)context;
  (void)message;
  abort();
}
void *halide_malloc(void *context, size_t bytes) {
  (void)context;
  (void)bytes;
  abort();
}
int halide_do_par_for(void *context, int (*task)(void *, int, unsigned char *),
                      int min, int size, unsigned char *closure) {
  (void)context;
  (void)task;
  (void)min;
  (void)size;
  (void)closure;
  abort();
}

enum { B = 300, K = 40, N = 700 };
static float x[B * K], w[N * K], c[N], first[B * N];

static void *work(void *result) {
  float *const y = (float *)malloc(sizeof first);
  float *const z = (float *)malloc(sizeof first);
  int i, code = 0;
  for (i = 0; i < 5 && code == 0; ++i) {
    code = head(B, K, N, x, w, c, y);
    if (code == 0) code = rows(B, N, y, z);
    if (code == 0 && memcmp(z, first, sizeof first) != 0) code = 50;
  }
  free(y);
  free(z);
  *(int *)result = code;
  return NULL;
}

int main(void) {
  pthread_t threads[4];
  int codes[4], i;
  for (i = 0; i < B * K; ++i) x[i] = (float)(i % 13) / 13;
  for (i = 0; i < N * K; ++i) w[i] = (float)(i % 17) / 17;
  for (i = 0; i < N; ++i) c[i] = (float)(i % 5);
  if (head(B, K, N, x, w, c, first) != 0) return 98;
  if (rows(B, N, first, first) != 0) return 98;
  for (i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, work, &codes[i]);
  for (i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  for (i = 0; i < 4; ++i) {
    if (codes[i] != 0) return codes[i];
  }
  return 0;
}
""", "rows", "head")
        self.succeed(program)
        self.succeed(program, HL_NUM_THREADS="3")

    def test_what_is_shipped_compiles(self):
        self.compile("rows_of")
        self.succeed(*CC, "rows_of_example.c", "librows_of.a", *LIBRARIES, "-o",
                     "example")
        self.assertRegex(self.succeed("./example"), r"^y: -1 -0.75 .*\n$")
        self.succeed(*CC, "-c", "rows_of_driver.c", "-o", "driver.o")
        self.succeed("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror",
                     "-pedantic", "-fsyntax-only", "-x", "c++", "rows_of.h")
        # The same again, and in a shared library.
        before = self.read("librows_of.a")
        self.compile("rows_of")
        self.assertEqual(self.read("librows_of.a"), before)
        self.succeed("cc", "-shared", "-Wl,--whole-archive", "librows_of.a",
                     "-Wl,--no-whole-archive,--no-undefined", *LIBRARIES, "-o",
                     "shared.so")

    # On a CPU without its instructions a library fails, and does not crash.
    def test_levels(self):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next(line for line in file
                         if line.startswith("flags")).split()
        for level, needed in (("avx2", "avx2 fma"),
                              ("avx512", "avx512f avx512vl avx512bw")):
            self.succeed(CLEAVE, "compile", "f.rules", "--fn", "powers", "-o",
                         ".", "--level", level)
            self.assertIn(f"For x86-64 with {level}.\n".encode(),
                          self.read("powers.h"))
            has = set(needed.split()) <= set(flags)
            self.call("powers", (40,), [("F32", [0.5] * 40)] * 2, [("F32", 40)],
                      OK if has else UNSUPPORTED_CPU)

    # A function that is not compiled leaves nothing behind.

    def test_what_is_not_supported(self):
        for function, message in {
            "places": "not supported: a library with `places`, which needs "
                      "what only a reference kernel computes: `nonzero`",
            "draw": "not supported: the input `k` is of dtype key",
            "j0": "the C library has a `j0`; --name",
        }.items():
            self.fail_with(message, "f.rules", "--fn", function, "-o", "made")
        self.assertFalse(os.path.exists(self.path("made")))
        self.compile("j0", "--name", "square")
        (y,) = self.call("square", (2,), [("F32", [3, 4])], [("F32", 2)])
        self.assertEqual(y, [9, 16])

    def test_bad_calls(self):
        rows = ("f.rules", "--fn", "rows", "-o")
        self.fail_with("did you mean `rows`?", "f.rules", "--fn", "rowes", "-o",
                       "made")
        self.fail_with("--level", *rows, "made", "--level", "mmx")
        self.fail_with("--wrt", *rows, "made", "--wrt", "x")
        self.fail_with("no input `z`", *rows, "made", "--jvp", "--wrt", "z")
        self.fail_with("axes `0,0`", *rows, "made", "--vmap", "0,0")
        self.fail_with("`a b` cannot name a function in C", *rows, "made",
                       "--name", "a b")
        # Not a function of C that is not there: libraries need tools.
        empty = self.path("empty")
        os.mkdir(empty)
        self.fail_with("`cc`, which is not on $PATH. Try: apt-get install gcc",
                       *rows, "made", PATH=empty)
        os.symlink("/bin/false", os.path.join(empty, "cc"))
        self.fail_with("apt-get install binutils", *rows, "made", PATH=empty)
        for tool in ("ld", "objcopy", "ar"):
            os.symlink("/bin/true", os.path.join(empty, tool))
        self.fail_with("cc exited with 1", *rows, "made", "--level", "sse4.1",
                       PATH=empty)
        self.assertFalse(os.path.exists(self.path("made")))
        self.fail_with("no/made", *rows, "no/made", "--level", "sse4.1")
        self.write("file", "")
        self.fail_with("file", *rows, "file", "--level", "sse4.1")
        # One of the files cannot be written: none is.
        os.mkdir(self.path("made"))
        os.mkdir(self.path("made/rows_example.c"))
        self.fail_with("rows_example.c", *rows, "made", "--level", "sse4.1")
        self.assertEqual(os.listdir(self.path("made")), ["rows_example.c"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
