"""Arrays that kernels take and give: dtypes, strides, frameworks, errors."""

import ctypes
import gc
import itertools
import threading
import unittest

import numpy as np

import cleave

RULES = cleave.load()


def kernel_of(text, **options):
    return RULES.parse(text).compile(**options)


def unary(op, dtype, result=None, shape="[n, m]"):
    result = result or dtype
    attributes = f"(%x, dtype: {result})" if op == "convert" else "(%x)"
    return kernel_of(
        f"graph (%x: {dtype}{shape}) -> (y: {result}{shape}) {{\n"
        f"  %1: {result}{shape} = {op}{attributes}\n  return y = %1\n}}\n")


DTYPES = {"bool": np.bool_, "u8": np.uint8, "u16": np.uint16,
          "u32": np.uint32, "u64": np.uint64, "i8": np.int8, "i16": np.int16,
          "i32": np.int32, "i64": np.int64, "f16": np.float16,
          "f32": np.float32, "f64": np.float64, "c64": np.complex64,
          "c128": np.complex128}


class ArraysTest(unittest.TestCase):

    def test_every_dtype_goes_in_and_out(self):
        for name, dtype in DTYPES.items():
            with self.subTest(name):
                x = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
                k = kernel_of(
                    f"graph (%x: {name}[n, m]) -> (y: {name}[m, n]) {{\n"
                    f"  %1: {name}[m, n] = transpose(%x, axes: [1, 0])\n"
                    "  return y = %1\n}\n")
                y, = k(x)
                self.assertEqual(y.dtype, x.dtype)
                np.testing.assert_array_equal(y, x.T)

    def test_strides_of_all_kinds(self):
        k = unary("neg", "f32")
        base = np.arange(96, dtype=np.float32).reshape(8, 12)
        keys = itertools.product(
            [slice(None), slice(None, None, -1), slice(1, 7, 3),
             slice(None, None, -2)], repeat=2)
        for rows, columns in keys:
            x = base[rows, columns]
            np.testing.assert_array_equal(k(x)[0], -x)
            np.testing.assert_array_equal(k(x.T)[0], -x.T)
        wide = np.broadcast_to(np.float32([1, 2, 3]), (4, 3))
        np.testing.assert_array_equal(k(wide)[0], -wide)

    def test_fields_and_odd_addresses_are_copied(self):
        k = unary("neg", "f32")
        packed = np.zeros((2, 3), [("a", "u1"), ("b", "<f4")])
        packed["b"] = np.arange(6).reshape(2, 3)
        np.testing.assert_array_equal(k(packed["b"])[0], -packed["b"])

    def test_read_only_inputs(self):
        x = np.ones((2, 3), np.float32)
        x.flags.writeable = False
        np.testing.assert_array_equal(unary("neg", "f32")(x)[0], -x)

    def test_empty_scalars_and_many_axes(self):
        k = unary("neg", "f32")
        for shape in [(0, 3), (3, 0), (0, 0)]:
            self.assertEqual(k(np.zeros(shape, np.float32))[0].shape, shape)
        y, = unary("neg", "f64", shape="[]")(np.float64(2.5))
        self.assertEqual((y.shape, float(y)), ((), -2.5))
        sizes = ", ".join("abcdefgh")
        x = np.random.default_rng(0).normal(size=(1, 2, 1, 3, 1, 2, 1, 2))
        y, = unary("neg", "f64", shape=f"[{sizes}]")(x)
        np.testing.assert_array_equal(y, -x)

    def test_numbers_and_lists_take_the_kernels_dtype(self):
        k = unary("neg", "f32")
        y, = k([[1, 2], [3, 4]])
        self.assertEqual(y.dtype, np.float32)
        np.testing.assert_array_equal(y, [[-1, -2], [-3, -4]])
        y, = unary("neg", "i32", shape="[]")(7)
        self.assertEqual((y.dtype, int(y)), (np.dtype(np.int32), -7))

    def test_numbers_beside_integers_keep_their_value(self):
        add = RULES["aten.add.Tensor"]
        np.testing.assert_array_equal(add(np.arange(3), 2.5), [2.5, 3.5, 4.5])
        self.assertEqual(add(np.arange(3, dtype=np.int8), 2).dtype, np.int8)
        self.assertEqual(add(np.ones(3, np.float32), 0.5).dtype, np.float32)
        with self.assertRaisesRegex(cleave.Error, "is f64, not i64"):
            RULES.matmul(np.ones((2, 2), int), [[1.5, 2], [3, 4]])

    def test_lists_of_results(self):
        split = RULES["aten.split.Tensor"]
        for parts in ([4, 1], [5]):
            y = split(np.arange(5.0), parts[0])
            self.assertIsInstance(y, list)
            self.assertEqual([part.shape for part in y],
                             [(n,) for n in parts])

    def test_new_values_of_arguments_are_results(self):
        x = np.array([[1, 2], [3, 6]], np.float32)
        mean = np.zeros(2, np.float32)
        y = RULES["aten._native_batch_norm_legit"](
            x, None, None, mean, np.ones(2, np.float32), training=True,
            momentum=0.5, eps=0.0)
        np.testing.assert_array_equal(y.running_mean, [1, 2])
        np.testing.assert_array_equal(mean, [0, 0])

    def test_buffers_that_are_not_numpys(self):
        import array
        y, = unary("neg", "f64", shape="[n]")(array.array("d", [1.5, 2]))
        np.testing.assert_array_equal(y, [-1.5, -2])

    def test_any_object_with_dlpack(self):
        class Other:
            def __init__(self, x):
                self.x = x

            def __dlpack__(self, **keywords):
                return self.x.__dlpack__(**keywords)

            def __dlpack_device__(self):
                return self.x.__dlpack_device__()

            def __array_namespace__(self):
                return np

        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        y, = unary("neg", "f32")(Other(x))
        self.assertIsInstance(y, np.ndarray)
        np.testing.assert_array_equal(y, -x)
        del y
        gc.collect()

    def test_results_outlive_what_made_them(self):
        def make():
            class Other:
                __array_namespace__ = staticmethod(lambda: np)
                __dlpack__ = staticmethod(
                    lambda **keywords: x.__dlpack__(**keywords))
            x = np.arange(4.0)
            return unary("neg", "f64", shape="[n]")(Other())[0]
        y = make()
        gc.collect()
        np.testing.assert_array_equal(y, [0, -1, -2, -3])

    def test_run_into(self):
        k = unary("neg", "f32")
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        out = np.full((4, 3), 9, np.float32)
        k.run_into([x], [out[1:3]])
        np.testing.assert_array_equal(out[1:3], -x)
        self.assertEqual((out == 9).sum(), 6)
        with self.assertRaises(cleave.InvalidArgumentError):
            k.run_into([x], [np.zeros((4, 3), np.float32)[::2]])
        k.run_into((x,), (x,))  # in place
        np.testing.assert_array_equal(x.ravel(), -np.arange(6))
        fixed = np.zeros((2, 3), np.float32)
        fixed.flags.writeable = False
        with self.assertRaises((ValueError, BufferError)):
            k.run_into([x], [fixed])
        with self.assertRaises(cleave.InvalidArgumentError):
            k.run_into([x], [np.zeros((3, 2), np.float32)])
        with self.assertRaises(cleave.InvalidArgumentError):
            k.run_into([], [x])

    def test_mistakes(self):
        k = unary("neg", "f32")
        x = np.ones((2, 3), np.float32)
        for wrong in [(), (x, x), (x.astype(np.float64),), (x[0],),
                      (x.astype(">f4"),)]:
            with self.assertRaises(cleave.InvalidArgumentError):
                k(*wrong)
        with self.assertRaises(TypeError):
            k(x=x)
        with self.assertRaises(Exception):
            k(np.array([["a"]]))

    def test_kernels_give_no_memory_away_twice(self):
        k = unary("neg", "f32")
        x = np.ones((2, 3), np.float32)
        first, second = k(x)[0], k(x)[0]
        first[:] = 5
        np.testing.assert_array_equal(second, -x)

    def test_report(self):
        report = unary("exp", "f32").report(np.ones((2, 3), np.float32))
        self.assertIn("exp", report["steps"][0]["ops"])

    def test_many_threads(self):
        k = unary("neg", "f64")
        wrong = []

        def work(seed):
            random = np.random.default_rng(seed)
            for n in random.integers(1, 200, 60):
                x = random.normal(size=(n, n))
                if not (k(x)[0] == -x).all():
                    wrong.append(n)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_no_leaks(self):
        k = unary("neg", "f32")
        x = np.ones((64, 64), np.float32)
        scalar = unary("neg", "f32", shape="[]")

        def use():
            for _ in range(300):
                k(x)
                scalar(3)
                try:
                    k(x[0])
                except cleave.Error:
                    pass
            gc.collect()

        use()
        before = _resident()
        for _ in range(10):
            use()
        self.assertLess(_resident() - before, 4 << 20)


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class HostKernelsTest(unittest.TestCase):

    def setUp(self):
        self.rules = RULES.load(
            "language 1\n\nop thrice(x: T[S..], *, by: int = 3, "
            "mode: {low, high} = low) -> T[S..]\n  where T: float\n"
            "{\n  by * x\n  jvp x = thrice(dx, by: by, mode: mode)\n}\n")
        self.graph = self.rules.call_graph("thrice", ["f64[n]"],
                                           {"by": 5, "mode": "high"})

    def test_called_with_arrays_and_attributes(self):
        seen = []

        def thrice(x, by, mode):
            seen.append((x.tolist(), by, mode))
            return by * x

        k = self.graph.compile(host_kernels={"thrice": thrice})
        np.testing.assert_array_equal(k(np.array([1.0, 2.0]))[0], [5, 10])
        self.assertEqual(seen, [([1.0, 2.0], 5, "high")])

    def test_stays_a_call_under_transforms(self):
        pushed, _ = self.graph.jvp([True])
        k = pushed.compile(host_kernels={"thrice": lambda x, by, mode: by * x})
        y, dy = k(np.array([1.0]), np.array([2.0]))
        self.assertEqual((y[0], dy[0]), (5.0, 10.0))

    def test_mistakes_of_functions(self):
        def fails(x, by, mode):
            raise KeyError("inside")

        x = np.ones(2)
        with self.assertRaises(cleave.Error) as caught:
            self.graph.compile(host_kernels={"thrice": fails})(x)
        self.assertIn("inside", str(caught.exception))
        self.assertIsInstance(caught.exception.__cause__, KeyError)
        for result in (np.ones(3), np.ones(2, complex), (x, x)):
            k = self.graph.compile(
                host_kernels={"thrice": lambda *_, r=result, **__: r})
            with self.assertRaises(cleave.Error):
                k(x)

    def test_from_many_threads(self):
        k = self.graph.compile(
            host_kernels={"thrice": lambda x, by, mode: by * x})
        right = []

        def work():
            right.append(all((k(np.full(3, i))[0] == 5.0 * i).all()
                             for i in np.arange(30.0)))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(right, [True] * 6)


class Bf16Test(unittest.TestCase):

    def test_bf16_needs_a_framework_or_ml_dtypes(self):
        k = unary("convert", "f32", "bf16", shape="[n]")
        x = np.array([1.0, 2.5], np.float32)
        try:
            import ml_dtypes
        except ImportError:
            with self.assertRaises(cleave.UnimplementedError):
                k(x)
        else:
            y, = k(x)
            self.assertEqual(y.dtype, ml_dtypes.bfloat16)
            back, = unary("convert", "bf16", "f32", shape="[n]")(y)
            np.testing.assert_array_equal(back, x)


class MemoryTest(unittest.TestCase):

    def test_capsules_of_both_kinds(self):
        from cleave import _native
        self.assertTrue(hasattr(_native.Memory, "__dlpack__"))
        with self.assertRaises(TypeError):
            _native.Memory()

    def test_library_is_the_one_beside_the_package(self):
        # The C interface is there for ctypes, too.
        library = ctypes.CDLL("libcleave.so")
        library.cleave_abi_version.restype = ctypes.c_uint32
        self.assertEqual(library.cleave_abi_version(), 1)


if __name__ == "__main__":
    unittest.main()
