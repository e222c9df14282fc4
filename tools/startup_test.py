#!/usr/bin/python3
"""Which processes load libHalide: those that compile a kernel, and no others.

    startup_test.py CLEAVE RULES GENERATOR LIBHALIDE

The built command is run with LD_DEBUG=files, by which the dynamic loader writes
down each shared object that it maps. GENERATOR is libcleave_codegen.so and
LIBHALIDE libHalide.so.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import CLEAVE, RULES, write_safetensors

GENERATOR, LIBHALIDE = (os.path.abspath(path) for path in sys.argv[3:5])
FUNCTION = "language 1\nfn f(x: f64[n]) -> f64[n] = softplus(x)\n"
RUN = ("run", "f.rules", "--fn", "f", "--input", "x", "--output", "y")


class Startup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("f.rules"), "w", encoding="utf-8") as file:
            file.write(FUNCTION)
        write_safetensors(self.path("x"), {"x": ([2], [0.25, 0.5])})

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_cleave(self, *arguments, program=CLEAVE, **variables):
        """The result, and whether the process mapped libHalide."""
        log = self.path("log")
        for old in glob.glob(log + ".*"):
            os.remove(old)
        result = subprocess.run(
            [program, *arguments],
            cwd=self.folder,
            env={**os.environ, "CLEAVE_RULES": RULES,
                 "CLEAVE_CACHE": self.path("cache"), "LD_DEBUG": "files",
                 "LD_DEBUG_OUTPUT": log, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=0.8 * float(os.environ.get("TEST_TIMEOUT", "300")),
            check=False,
        )
        text = ""
        for path in glob.glob(log + ".*"):
            with open(path, encoding="utf-8", errors="replace") as file:
                text += file.read()
        # The log lists the libraries that are loaded, as the test means it to.
        self.assertIn("libstdc++.so", text)
        return result, "libHalide.so" in text

    def succeed(self, *arguments, **options):
        result, loaded = self.run_cleave(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        return loaded

    def test_what_compiles_no_kernel_loads_no_halide(self):
        for arguments in (
            ("--version",),
            ("expand", "f.rules", "--fn", "f"),
            ("jvp", "f.rules", "--fn", "f"),
            ("vjp", "f.rules", "--fn", "f", "--expand"),
            ("vmap", "f.rules", "--fn", "f", "--in-axes", "0"),
            ("explain", "f.rules", "--fn", "f", "--fusion"),
            ("aot", "f.rules", "--fn", "f", "--dynamic"),
            ("coverage", "f.rules", "--op", "softplus"),
            RUN,
        ):
            with self.subTest(arguments):
                self.assertFalse(self.succeed(*arguments))

    def test_a_kernel_of_the_cache_needs_no_halide(self):
        self.assertTrue(self.succeed(*RUN, "--backend", "cpu"))
        with open(self.path("y"), "rb") as file:
            compiled = file.read()
        os.remove(self.path("y"))
        # Not even where there is none.
        self.assertFalse(self.succeed(*RUN, "--backend", "cpu",
                                      CLEAVE_CODEGEN="/nowhere"))
        with open(self.path("y"), "rb") as file:
            self.assertEqual(file.read(), compiled)

    def test_without_a_code_generator_a_kernel_is_refused(self):
        result, loaded = self.run_cleave(*RUN, "--backend", "cpu",
                                         CLEAVE_CODEGEN="/nowhere")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("no code generator: $CLEAVE_CODEGEN is /nowhere, which "
                      "is no file", result.stderr)
        self.assertFalse(loaded)

    def test_an_installed_program_finds_its_code_generator(self):
        os.makedirs(self.path("usr", "bin"))
        os.makedirs(self.path("usr", "lib"))
        program = self.path("usr", "bin", "cleave")
        shutil.copy(CLEAVE, program)
        outside = {"RUNFILES_DIR": "", "TEST_SRCDIR": ""}
        result, _ = self.run_cleave(*RUN, "--backend", "cpu", program=program,
                                    **outside)
        self.assertEqual(result.returncode, 2, result.stderr)
        for place in ("bin", "lib"):
            self.assertIn(self.path("usr", place, "libcleave_codegen.so"),
                          result.stderr)
        for place in ("lib", "bin"):
            with self.subTest(place):
                copies = [self.path("usr", place, os.path.basename(path))
                          for path in (GENERATOR, LIBHALIDE)]
                for path, copy in zip((GENERATOR, LIBHALIDE), copies):
                    shutil.copy(path, copy)
                self.assertTrue(self.succeed(
                    *RUN, "--backend", "cpu", program=program,
                    CLEAVE_CACHE="", **outside))
                for copy in copies:
                    os.remove(copy)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
