#!/usr/bin/python3
"""abi_test.py HEADER LIBRARY STORED [--update]: whether the C interface keeps
its word.

A program that was linked with an older library runs with this one: functions
and fields are added, none is changed or removed. abidiff compares the interface
of the header with the one in STORED. The library shows the functions of the
header, and nothing else. --update writes STORED, when something was added.
"""

import os
import re
import subprocess
import sys
import tempfile


def run(*command, folder=None):
    return subprocess.run(command, check=False, text=True, cwd=folder,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def prototypes(header):
    """The functions of the header: name -> prototype."""
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.DOTALL)
    found = re.findall(r"CLEAVE_API\s+([^;{#]*?\b(cleave_\w+)\s*\([^;]*\));",
                       text)
    return {name: " ".join(prototype.split()) for prototype, name in found}


def compile_stubs(header, functions, folder):
    """A library with a function of each type: its debugging information has the
    types of the interface alone."""
    source = os.path.join(folder, "stubs.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include "cleave.h"\n#include <stdlib.h>\n')
        for prototype in functions.values():
            file.write(f"CLEAVE_API {prototype} {{ abort(); }}\n")
    library = os.path.join(folder, "libcleave.so")
    made = run("cc", "-g", "-std=c99", "-fPIC", "-shared", "-w",
               "-I" + os.path.dirname(os.path.abspath(header)),
               os.path.basename(source), "-o", library, folder=folder)
    if made.returncode != 0:
        sys.exit("FAIL: the header does not compile\n" + made.stdout)
    return library


def exported(library):
    lines = run("nm", "-D", "--defined-only", library).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def main():
    header, library, stored, *flags = sys.argv[1:]
    functions = prototypes(header)
    if len(functions) < 40:
        sys.exit(f"FAIL: only {len(functions)} functions are found in {header}")
    shown = exported(library)
    if shown != set(functions):
        sys.exit(f"FAIL: only in {library}: {sorted(shown - set(functions))}, "
                 f"only in {header}: {sorted(set(functions) - shown)}")
    with tempfile.TemporaryDirectory() as folder:
        stubs = compile_stubs(header, functions, folder)
        if "--update" in flags:
            wrote = run("abidw", "--no-corpus-path", "--no-comp-dir-path",
                        "--no-show-locs", "--out-file", stored, stubs)
            sys.exit(wrote.returncode)
        compared = run("abidiff", stored, stubs)
    # Bit 2: something differs. Bit 3: programs would notice.
    if compared.returncode & ~4 or re.search(
            r"^  \[[CD]\]|^\d+ function[s]? with some (?!0)", compared.stdout,
            re.MULTILINE):
        sys.exit("FAIL: the interface is not what it was; where fields were "
                 "added behind all others, run this with --update\n" +
                 compared.stdout)
    if compared.returncode:
        sys.exit("FAIL: something was added: run this with --update\n" +
                 compared.stdout)
    print(f"{len(functions)} functions are as they were")


if __name__ == "__main__":
    main()
