"""The page onnx.md: its programs run, and its tables say what is so.

    python -m unittest onnx_docs
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest

from onnx_testing import HAVE_ONNX, WHY_ONNX

if HAVE_ONNX:
    import onnx

    import cleave
    from cleave.onnx.export_ops import PRIMITIVES
    from cleave.onnx.importer import REASONS, Importer
    from cleave.onnx.names import Names

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir,
                    "onnx.md")


def _page() -> str:
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def _table(heading: str) -> list[tuple[str, str]]:
    section = _page().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", section, re.M)
    return [row for row in rows if row[0] not in ("how", "what")]


@unittest.skipUnless(HAVE_ONNX, WHY_ONNX + " (4 tests)")
class Page(unittest.TestCase):

    def test_programs(self):
        page = _page()
        blocks = re.findall(r"```(python|sh)\n(.*?)```", page, re.S)
        self.assertGreaterEqual(len(blocks), 5)
        shown = re.search(r"```\n(language 1.*?)```", page, re.S)[1]
        said = re.search(r"^prints `(.*?)`", page, re.M)[1]
        before = os.getcwd()
        names: dict = {}
        printed = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for kind, text in blocks:
                    if kind == "sh":
                        line = text.strip().replace("python", sys.executable,
                                                    1)
                        subprocess.run(line.split(), check=True,
                                       capture_output=True)
                        continue
                    with contextlib.redirect_stdout(printed):
                        exec(compile(text, PAGE, "exec"), names)
                self.assertTrue(os.path.exists("slope.onnx"))
            finally:
                os.chdir(before)
        self.assertIn(shown.strip(), printed.getvalue())
        self.assertIn(said, printed.getvalue())

    def test_supported_ops(self):
        importer = Importer(cleave.load(), Names())
        rows = dict(_table("Supported ops"))
        defined = set(rows.pop("by ONNX's definition", "").split())
        listed = [op for ops in rows.values() for op in ops.split()]
        self.assertEqual(len(listed), len(set(listed)))
        every = {s.name for s in onnx.defs.get_all_schemas()}
        every |= {n.removeprefix("onnx.") for n in importer.calls.names}
        known = {op for op in every if importer.knows(op)}
        self.assertEqual(set(listed), known)
        for op in defined:
            self.assertFalse(importer.knows(op), op)
            schema = onnx.defs.get_schema(op)
            self.assertTrue(schema.has_function
                            or schema.has_context_dependent_function, op)

    def test_unsupported_ops(self):
        importer = Importer(cleave.load(), Names())
        rows = _table("Not supported")
        listed = set()
        for what, why in rows:
            for op in re.findall(r"\b[A-Z][A-Za-z0-9]+\b",
                                 what.split(",")[0]):
                if op in REASONS:
                    self.assertIn(why.split(":")[0], REASONS[op]
                                  + " what they draw cannot be told")
                listed.add(op)
        defined = set(dict(_table("Supported ops"))
                      .get("by ONNX's definition", "").split())
        lacking = {s.name for s in onnx.defs.get_all_schemas()
                   if s.domain == "" and not s.deprecated
                   and not importer.knows(s.name)}
        self.assertEqual(lacking - defined - listed, set())

    def test_unsaid_primitives(self):
        text = re.search(r"raise `UnimplementedError`: `(.*?)`", _page(),
                         re.S)[1]
        refused = {name for name, function in PRIMITIVES.items()
                   if function.__name__ == "refuse"}
        self.assertEqual(set(text.split()), refused)


if __name__ == "__main__":
    unittest.main()
