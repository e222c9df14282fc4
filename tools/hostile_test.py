#!/usr/bin/python3
"""Runs the built command on files that mean no good.

    hostile_test.py CLEAVE FILE..

Whatever a file says, each verb ends by itself, within a bound of memory, of
stack and of time, and says why. One FILE is generated.py, which makes those that
are too long to be written by hand. The answer that is due stands in each, in the
lines at its end (or in FILE.expect, where it can have no comments):

    // check --max-steps 1000: more than 1000 steps of loops
    // expand f: return y

VERB, what follows FILE of the call (`f` stands for `--fn f` and what else VERB
needs), and what stdout or stderr contain. All other verbs are run, too, and have
to end likewise, unless the file says

    // only these
"""

import os
import re
import resource
import runpy
import struct
import subprocess
import sys
import tempfile
import time
import unittest

MEMORY = 8 << 30  # of the process: address space
STACK = 512 << 10  # as a thread of a host may have
# For one call; most take a fraction of a second. AddressSanitizer's build is
# up to ten times slower.
SECONDS = 200 if "ASAN_OPTIONS" in os.environ else 20
CLEAVE = os.path.abspath(sys.argv[1])


def all_files(given, folder):
    """The given files, and the generated ones, which are written to `folder`."""
    (generator,) = (path for path in given if path.endswith("/generated.py"))
    made = runpy.run_path(generator)["files"]()
    for name, text in made.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return [path
            for path in [*given, *(os.path.join(folder, name) for name in made)]
            if path.endswith((".rules", ".json"))]


GENERATED = tempfile.TemporaryDirectory()
FILES = all_files(sys.argv[2:], GENERATED.name)
VERBS = ("check", "fmt", "expand", "vmap", "jvp", "vjp", "run")


def expectations(path):
    """[([VERB, ARGUMENT, ..], TEXT)], whether no other verbs are run."""
    expect = path + ".expect"
    with open(expect if os.path.exists(expect) else path,
              encoding="utf-8", errors="replace") as file:
        lines = file.read().split("\n")
    found = []
    for line in lines:
        match = re.match(rf"(?:// )?((?:{'|'.join(VERBS)})\b[^:]*): ?(.*)", line)
        if match:
            found.append((match[1].split(), match[2]))
    return found, "// only these" in lines


def write_vector(path):
    """A file for `run`: x, two numbers."""
    header = b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header
                   + struct.pack("<2f", 0.25, 0.5))


def limit():
    # AddressSanitizer maps all addresses beforehand.
    if "ASAN_OPTIONS" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(path, folder, verb, *arguments):
    if arguments[:1] == ("f",):
        arguments = ("--fn", *arguments)
        if verb == "vmap":
            arguments += ("--in-axes", "0")
        if verb == "run":
            arguments += ("--input", f"{folder}/in", "--output", f"{folder}/out",
                          "--backend", "interpreter")
    began = time.monotonic()
    result = subprocess.run(
        [CLEAVE, verb, path, *arguments],
        env={**os.environ, "CLEAVE_RULES": "", "CLEAVE_CACHE": ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=SECONDS,
        preexec_fn=limit,
        check=False,
    )
    return result, time.monotonic() - began


class HostileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        write_vector(os.path.join(self.folder, "in"))

    def ends(self, path, verb, *arguments):
        try:
            result, seconds = run(path, self.folder, verb, *arguments)
        except subprocess.TimeoutExpired:
            self.fail(f"{path} {verb} {arguments}: does not end")
        what = f"{path} {verb} {arguments}: {result.stdout[-2000:]}"
        self.assertIn(result.returncode, (0, 1, 2), what)
        self.assertNotIn("check failed", result.stdout, what)
        self.assertNotIn("no memory", result.stdout, what)
        if "-v" in os.environ.get("HOSTILE", ""):
            first = (result.stdout.strip().split("\n") or [""])[0]
            print(f"{seconds:6.2f} {os.path.basename(path)} {verb} "
                  f"{' '.join(arguments)}: {first[:150]}", flush=True)
        return result.stdout

    def test_there_are_files(self):
        self.assertGreater(len(FILES), 40)


def add_test(path):
    def test(self):
        expected, only = expectations(path)
        self.assertTrue(expected, f"{path}: says nothing of its answer")
        done = set()
        for (verb, *arguments), text in expected:
            self.assertIn(text, self.ends(path, verb, *arguments),
                          f"{path} {verb} {arguments}")
            done.add(verb)
        if only:
            return
        verbs = {"check": [], "fmt": []}
        with open(path, encoding="utf-8", errors="replace") as file:
            if re.search(r"^fn f\(", file.read(), re.M):
                verbs.update({verb: ["f"] for verb in VERBS[2:]})
        for verb in sorted(set(verbs) - done):
            self.ends(path, verb, *verbs[verb])

    name = os.path.basename(path).replace(".", "_")
    setattr(HostileTest, f"test_{name}", test)


for one in FILES:
    add_test(one)

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
