#!/usr/bin/python3
"""Sentences of comments and pages begin with the thing that they speak of.

    sentence_lint.py FILE...

A sentence that begins with one of WORDS leaves the reader to guess the noun.
Prints `FILE:LINE: ..` for each, and exits 1 if there is one. It reads the
comments of C++ and Python, and the text of Markdown but tables and listings.
"""

import re
import sys

WORDS = ("What", "That", "Those", "Whose", "Of")

_WORD = rf"(?:{'|'.join(WORDS)})\b"
_BEGINS = re.compile(_WORD)
_BEGINS_WITHIN = re.compile(rf"[.!?] (?={_WORD})")
_ENDS = re.compile(r"[.!?:]\s*$")
_MARKS = {".cc": "//", ".h": "//", ".py": "#", ".md": None}
# A bullet, a heading or a number begins a sentence as an empty line does.
_BULLET = re.compile(r"\s*(?:[-*#]+|\d+\.)\s+")


def _comment(line, mark):
    """The text of a comment that `line` is or ends with, or None, and whether
    code stands before it."""
    stripped = line.strip()
    if stripped.startswith(mark):
        return stripped.lstrip(mark[0]).strip(), False
    before, found, text = line.rpartition(f"  {mark} ")
    # A mark within a string is none.
    if not found or before.count('"') % 2 == 1:
        return None, False
    return text.strip(), True


def _lines(path):
    """(number, text, whether it begins a paragraph) of each line to read."""
    mark = _MARKS[path[path.rindex("."):]]
    fresh = True
    listing = False
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if mark is None:
                listing ^= line.startswith("```")
                if listing or line.startswith(("```", "|")) or not line.strip():
                    fresh = True
                    continue
                text = _BULLET.sub("", line, count=1)
                yield number, text.strip(), fresh or text != line
                fresh = False
                continue
            text, behind_code = _comment(line, mark)
            if not text:
                fresh = True
                continue
            yield number, text, fresh or behind_code
            fresh = behind_code


def mistakes(path):
    """Each sentence of the file that begins with one of WORDS, as a line."""
    ended = True
    for number, text, fresh in _lines(path):
        starts = [match.end() for match in _BEGINS_WITHIN.finditer(text)]
        if (fresh or ended) and _BEGINS.match(text):
            starts.insert(0, 0)
        ended = bool(_ENDS.search(text))
        for start in starts:
            yield (f"{path}:{number}: a sentence begins with the noun that it "
                   f"speaks of: `{text[start:]}`")


def main(paths):
    found = [mistake for path in paths for mistake in mistakes(path)]
    for mistake in found:
        print(mistake, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
