#!/usr/bin/python3
"""Runs the console examples of Markdown files and compares what they print.

    readme_test.py CLEAVE RULES EXAMPLES FILE.md... [--update]

In each file, in order, in one fresh folder:
- A block fenced as ```rules NAME.rules (or another NAME) is written to NAME.
- In a block fenced as ```console, a line `$ COMMAND` is run by bash (lines that
  end in a backslash go on), and the lines up to the next one are what it must
  print, stdout and stderr together; `[exit N]` as the last one of them stands
  for that exit status. `tools/cleave` is CLEAVE, `rules` is RULES; its examples
  are in EXAMPLES.
- Other blocks are not looked at.

--update, by way of `bazel run`, writes what the commands print into the files.
"""

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile


def run_command(command, folder):
    """What a command prints, with a line for an exit status other than 0."""
    result = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=folder,
        env={
            **os.environ,
            "CLEAVE_RULES": os.path.join(folder, "rules"),
            "CLEAVE_EXAMPLES": os.path.join(folder, "tools/examples"),
            "CLEAVE_CACHE": os.path.join(folder, ".cache"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    # Each check is a first one.
    shutil.rmtree(os.path.join(folder, ".cache", "certificates"),
                  ignore_errors=True)
    # AddressSanitizer warns of the stacks that Halide changes between.
    output = "".join(
        line for line in result.stdout.splitlines(keepends=True)
        if "ASan doesn't fully support makecontext" not in line)
    if output and not output.endswith("\n"):
        output += "\n"
    if result.returncode != 0:
        output += f"[exit {result.returncode}]\n"
    return output


def run_console(lines, folder):
    """The block's lines as they should be, and how many commands it has."""
    result = []
    commands = 0
    i = 0
    while i < len(lines):
        if not lines[i].startswith("$ "):
            i += 1  # an output line of before
            continue
        command = [lines[i]]
        while command[-1].endswith("\\\n"):
            i += 1
            command.append(lines[i])
        i += 1
        commands += 1
        result += command
        text = "".join(command)[len("$ "):]
        result.append(run_command(text, folder))
    return "".join(result), commands


def prepare(folder, cleave, rules, examples):
    os.mkdir(os.path.join(folder, "tools"))
    os.symlink(os.path.abspath(cleave), os.path.join(folder, "tools/cleave"))
    os.symlink(os.path.abspath(rules), os.path.join(folder, "rules"))
    os.symlink(
        os.path.abspath(examples), os.path.join(folder, "tools/examples")
    )


def process(text, cleave, rules, examples):
    """The text with what its commands print, and how many there are."""
    result = []
    commands = 0
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder, cleave, rules, examples)
        lines = text.splitlines(keepends=True)
        i = 0
        while i < len(lines):
            fence = re.fullmatch(r"```(\w+) ?([\w.]*)\n", lines[i])
            result.append(lines[i])
            i += 1
            if not fence:
                continue
            end = lines.index("```\n", i)
            block = lines[i:end]
            i = end
            if fence[1] == "console":
                output, count = run_console(block, folder)
                result.append(output)
                commands += count
            else:
                result += block
                if fence[2]:
                    path = os.path.join(folder, fence[2])
                    with open(path, "w", encoding="utf-8") as file:
                        file.write("".join(block))
            result.append(lines[i])
            i += 1
    return "".join(result), commands


def show_difference(path, got, want):
    sys.stdout.writelines(
        difflib.unified_diff(
            want.splitlines(keepends=True),
            got.splitlines(keepends=True),
            path,
            "what the commands print",
        )
    )


def main():
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    update = "--update" in sys.argv
    cleave, rules, examples, *paths = arguments
    failed = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        result, commands = process(text, cleave, rules, examples)
        if commands == 0:
            print(f"{path}: no command to run")
            failed += 1
        elif result == text:
            print(f"{path}: {commands} commands")
        elif update:
            root = os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(result)
            print(f"{path}: updated")
        else:
            show_difference(path, result, text)
            failed += 1
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
