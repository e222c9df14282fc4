#!/usr/bin/python3
"""Installs the C library, and uses it from pkg-config and from CMake.

    install_test.py INSTALL LIBRARIES

INSTALL is tools/install, LIBRARIES the folder that it takes. Runs the programs
of c.md, too: each block of C on that page is a program.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
LIBRARIES = os.path.abspath(sys.argv.pop(2))
INSTALL = os.path.abspath(sys.argv.pop(1))
PAGE = os.path.join(os.path.dirname(os.path.dirname(INSTALL)),
                    "engine/embed/c.md")


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def blocks(language):
    """The blocks of a language in c.md, by the name behind the language."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    return dict(re.findall(rf"(?ms)^```{language} (\S+)\n(.*?)^```", page))


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        first = os.path.join(cls.folder, "first")
        cls.printed = run(INSTALL, first, LIBRARIES)
        # The whole may be moved.
        cls.prefix = os.path.join(cls.folder, "moved")
        os.rename(first, cls.prefix)
        cls.environment = {
            "PATH": os.environ["PATH"], "HOME": cls.folder,
            "PKG_CONFIG_PATH": os.path.join(cls.prefix, "lib/pkgconfig")}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def write(self, folder, files):
        place = os.path.join(self.folder, folder)
        os.makedirs(place)
        for name, text in files.items():
            with open(os.path.join(place, name), "w", encoding="utf-8") as file:
                file.write(text)
        return place

    def test_files(self):
        self.assertRegex(self.printed, r"cleave \d+\.\d+\.\d+ is in ")
        for path in ("include/cleave/cleave.h", "include/cleave/dlpack.h",
                     "lib/libcleave.so", "lib/libcleave_codegen.so",
                     "lib/libHalide.so", "lib/pkgconfig/cleave.pc",
                     "share/cleave/rules/core/activation.rules"):
            self.assertTrue(os.path.isfile(os.path.join(self.prefix, path)),
                            path)
        for folder, _, names in os.walk(os.path.join(self.prefix, "lib")):
            for name in names:
                if name.endswith((".pc", ".cmake")):
                    with open(os.path.join(folder, name),
                              encoding="utf-8") as file:
                        self.assertNotIn("@", file.read(), name)

    def test_pkg_config(self):
        sources = blocks("c")
        self.assertTrue(sources)
        place = self.write("plain", sources)
        flags = run("pkg-config", "--cflags", "--libs", "cleave",
                    env=self.environment).split()
        for name in sources:
            run("cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror",
                name, *flags, "-lm", "-o", name[:-2], cwd=place,
                env=self.environment)
            printed = run(os.path.join(place, name[:-2]), cwd=place,
                          env=self.environment)
            self.assertEqual(printed, blocks("text")[name[:-2] + ".out"], name)

    def test_cmake(self):
        if shutil.which("cmake") is None:
            self.skipTest("there is no cmake")
        place = self.write("cmake", {**blocks("cpp"), **blocks("cmake")})
        build = os.path.join(place, "build")
        run("cmake", "-S", place, "-B", build,
            f"-DCMAKE_PREFIX_PATH={self.prefix}", env=self.environment)
        run("cmake", "--build", build, env=self.environment)
        printed = run(os.path.join(build, "gradient"), env=self.environment)
        self.assertEqual(printed, blocks("text")["gradient.out"])


if __name__ == "__main__":
    unittest.main()
