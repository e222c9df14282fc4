#!/usr/bin/python3
"""Hosts that are short of memory, that fork, and that have the library twice.

    hosts_test.py LIBRARIES

LIBRARIES is a folder with libcleave.so and what it needs.
"""

import ctypes
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
LIBRARIES = os.path.abspath(sys.argv.pop(1))
GRAPH = b"""graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = exp(%x)
  return y = %1
}
"""


class Library:
    """One copy of the library, with a kernel of exp."""

    def __init__(self, folder):
        self.code = ctypes.CDLL(os.path.join(folder, "libcleave.so"))
        self.code.cleave_status_message.restype = ctypes.c_char_p
        self.code.cleave_status_message.argtypes = [ctypes.c_void_p]
        for name in ("rules_shipped", "graph_parse", "kernel_compile"):
            getattr(self.code, "cleave_" + name).restype = ctypes.c_void_p

    def call(self, name, *arguments):
        """The result of the call. RuntimeError with its status' message."""
        out = ctypes.c_void_p()
        status = getattr(self.code, "cleave_" + name)(*arguments,
                                                      ctypes.byref(out))
        if status:
            raise RuntimeError(
                self.code.cleave_status_message(status).decode())
        return out

    def compile(self):
        rules = self.call("rules_shipped", None)
        graph = self.call("graph_parse", rules, GRAPH)
        return self.call("kernel_compile", graph, None, None)


def compile_within(megabytes):
    """Run in a process of its own: prints what came of it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = megabytes << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        Library(LIBRARIES).compile()
        print("compiled")
    except (RuntimeError, OSError) as error:
        print("error:", error)


class HostsTest(unittest.TestCase):
    def test_little_memory(self):
        answers = []
        for megabytes in (58, 59, 60, 61, 62, 64, 100, 150, 200, 300, 400, 800,
                          1600):
            done = subprocess.run(
                [sys.executable, __file__, LIBRARIES, "within",
                 str(megabytes)], text=True, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, (megabytes, done.stdout))
            self.assertRegex(done.stdout, r"\A(compiled|error: \S)")
            answers.append(done.stdout)
        self.assertEqual(answers[-1], "compiled\n")
        self.assertIn("error", answers[0])

    def test_two_copies(self):
        with tempfile.TemporaryDirectory() as folder:
            second = os.path.join(folder, "second")
            shutil.copytree(LIBRARIES, second)
            for library in (Library(LIBRARIES), Library(second)):
                self.assertTrue(library.compile())

    def test_forked_child(self):
        library = Library(LIBRARIES)
        library.compile()
        child = os.fork()
        if child == 0:
            try:
                library.compile()
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["within"]:
        compile_within(int(sys.argv[2]))
    else:
        unittest.main(argv=sys.argv[:1])
