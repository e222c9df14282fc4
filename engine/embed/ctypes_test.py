#!/usr/bin/python3
"""The C interface from Python's ctypes alone: any language can call it.

    ctypes_test.py LIBRARY
"""

import ctypes
import json
import math
import sys
import unittest

sys.dont_write_bytecode = True
LIBRARY = ctypes.CDLL(sys.argv.pop(1))


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device),
                ("ndim", ctypes.c_int32), ("dtype", DType),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


for name in ("cleave_version", "cleave_status_message", "cleave_status_json",
             "cleave_text_data"):
    getattr(LIBRARY, name).restype = ctypes.c_char_p
for name in ("cleave_text_size", "cleave_graph_input_count"):
    getattr(LIBRARY, name).restype = ctypes.c_size_t
for name in ("cleave_rules_shipped", "cleave_graph_parse", "cleave_grad",
             "cleave_kernel_compile", "cleave_kernel_run",
             "cleave_rules_describe"):
    getattr(LIBRARY, name).restype = ctypes.c_void_p  # a status


def call(function, *arguments):
    """Calls a function; its status is an exception."""
    status = getattr(LIBRARY, function)(*arguments)
    if status is None:
        return
    handle = ctypes.c_void_p(status)
    code = LIBRARY.cleave_status_code(handle)
    message = LIBRARY.cleave_status_message(handle).decode()
    json.loads(LIBRARY.cleave_status_json(handle))
    LIBRARY.cleave_status_free(handle)
    raise RuntimeError(f"{code}: {message}")


def made(function, *arguments):
    """The result of a function whose last argument is its `out`."""
    out = ctypes.c_void_p()
    call(function, *arguments, ctypes.byref(out))
    return out


def tensor(values):
    """A row-major f32 tensor; the arrays behind it live as long as it."""
    data = (ctypes.c_float * len(values))(*values)
    shape = (ctypes.c_int64 * 1)(len(values))
    result = Tensor(ctypes.cast(data, ctypes.c_void_p), Device(1, 0), 1,
                    DType(2, 32, 1), shape, None, 0)
    result.keep = (data, shape)
    return result


def run(kernel, inputs, outputs):
    pointers = [(ctypes.POINTER(Tensor) * len(side))(
        *map(ctypes.pointer, side)) for side in (inputs, outputs)]
    call("cleave_kernel_run", kernel, pointers[0],
         ctypes.c_size_t(len(inputs)), pointers[1],
         ctypes.c_size_t(len(outputs)), None)


class CtypesTest(unittest.TestCase):
    def test_version(self):
        self.assertGreaterEqual(LIBRARY.cleave_abi_version(), 1)
        self.assertRegex(LIBRARY.cleave_version().decode(), r"^\d+\.\d+")

    def test_gradient(self):
        rules = made("cleave_rules_shipped", None)
        graph = made("cleave_graph_parse", rules,
                     b"graph (%x: f32[n]) -> (y: f32[]) {\n"
                     b"  %1: f32[n] = exp(%x)\n"
                     b"  %2: f32[] = sum(%1, axes: [0])\n"
                     b"  return y = %2\n}\n")
        gradient = made("cleave_grad", graph, (ctypes.c_uint8 * 1)(1),
                        ctypes.c_size_t(1), ctypes.c_int32(0), None)
        kernel = made("cleave_kernel_compile", gradient, None, None)
        x = tensor([0.0, 1.0, -2.0])
        y = tensor([0.0] * 3)
        run(kernel, [x], [y])
        for value, expected in zip(y.keep[0], (0.0, 1.0, -2.0)):
            self.assertAlmostEqual(value, math.exp(expected), places=5)
        with self.assertRaisesRegex(RuntimeError, "^3: "):
            run(kernel, [x, x], [y])
        LIBRARY.cleave_kernel_release(kernel)
        LIBRARY.cleave_graph_release(gradient)
        LIBRARY.cleave_graph_release(graph)
        LIBRARY.cleave_rules_release(rules)

    def test_texts(self):
        rules = made("cleave_rules_shipped", None)
        text = made("cleave_rules_describe", rules, b"softmax")
        data = LIBRARY.cleave_text_data(text)
        self.assertEqual(len(data), LIBRARY.cleave_text_size(text))
        self.assertEqual(json.loads(data)["name"], "softmax")
        LIBRARY.cleave_text_free(text)
        with self.assertRaisesRegex(RuntimeError, "^5: .*softmax"):
            made("cleave_rules_describe", rules, b"softmaxx")
        LIBRARY.cleave_rules_release(rules)


if __name__ == "__main__":
    unittest.main()
