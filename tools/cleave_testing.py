"""What the tests of the built command share.

It is called as `NAME_test.py CLEAVE RULES ...` and imports this by

    sys.dont_write_bytecode = True
    sys.path[0] = "tools"
    import cleave_testing

since Python looks beside the file that a symlink of the sandbox points to,
which is the source tree: what the test declares is to be imported, and no cache
left there.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

CLEAVE, RULES = (os.path.abspath(path) for path in sys.argv[1:3])

# The new op of README.md.
SOFT_ARGMAX = """\
language 1

/// The index of the largest element, softened: the mean index under softmax(beta x).
op soft_argmax(x: T[A.., n@axis, B..], *, axis: axis(x) = -1, beta: real = 1) -> T[A.., B..]
  where T: float
  compute acc
  error shape "an axis of extent 0 has no index" if n == 0
  spec y[a.., b..] = sum[i](i * exp(beta * x[a.., i, b..])) / sum[i](exp(beta * x[a.., i, b..]))
  accuracy T within 2 ulp + 3 cond
{
  let p = softmax(beta * x, axis: axis)
  y[a.., b..] = sum[i](i * p[a.., i, b..])
}

example soft_argmax([0.0, 0.0, 0.0]) ~ 1.0

fn pick(x: f64[n]) -> f64[] = soft_argmax(x, beta: 2)
"""


def write_safetensors(path, tensors):
    """tensors: name -> (shape, numbers), all f64."""
    header, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(numbers)}d", *numbers)
        header[name] = {
            "dtype": "F64",
            "shape": shape,
            "data_offsets": [begin, len(data)],
        }
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F64", entry
        begin, end = entry["data_offsets"]
        numbers = struct.unpack(f"<{(end - begin) // 8}d", data[begin:end])
        tensors[name] = (entry["shape"], list(numbers))
    return tensors


class CommandTest(unittest.TestCase):
    """Runs the command in a folder of its own, where new.rules is."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.write("new.rules", SOFT_ARGMAX)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(self.path(name), mode) as file:
            file.write(content)

    def run_cleave(self, *arguments, rules=RULES):
        environment = {**os.environ, "CLEAVE_RULES": rules,
                       "CLEAVE_CACHE": ""}
        if rules is None:
            del environment["CLEAVE_RULES"]
        return subprocess.run(
            [CLEAVE, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=0.8 * float(os.environ.get("TEST_TIMEOUT", "300")),
            check=False,
        )

    def succeed(self, *arguments):
        result = self.run_cleave(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        return result.stdout

    def fail_with(self, message, *arguments, rules=RULES):
        """Exits with 2, says why on stderr, and prints no data."""
        result = self.run_cleave(*arguments, rules=rules)
        what = f"{arguments}: {result.stdout}{result.stderr}"
        self.assertEqual(result.returncode, 2, what)
        self.assertEqual(result.stdout, "", what)
        self.assertIn(message, result.stderr, what)

    def assert_close(self, got, want):
        self.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            self.assertAlmostEqual(a, b, delta=1e-14 * max(1, abs(b)))
