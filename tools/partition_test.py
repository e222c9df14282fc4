#!/usr/bin/python3
"""Runs `cleave aot` of the built command: what its partitions save.

    partition_test.py CLEAVE RULES
"""

import re
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import CommandTest  # pylint: disable=wrong-import-position

LAYERS = """\
language 1

fn layers(a: f32[8, 8], b: f32[8, 8], x: f32[64, 8]) -> f32[64, 8]
{
  let h = checkpoint_name(tanh(x @ a), name: "hidden")
  sin(exp(h @ b) @ a) @ b
}
"""

# Lines of the table of what is saved.
SAVED = re.compile(r"^  saved\.\d+ .* bytes +(.*)$", re.MULTILINE)


class PartitionTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.write("layers.rules", LAYERS)

    def saved(self, *flags):
        """What is saved beside the inputs, as the table names it."""
        text = self.succeed("aot", "layers.rules", "--fn", "layers",
                            "--params", "2", *flags)
        return [line.split(" of ")[0] for line in SAVED.findall(text)
                if not line.startswith("the input")]

    def test_budgets(self):
        plain = self.saved()
        cut = [self.saved("--partition", "min-cut", "--budget", budget)
               for budget in ("1", "0.5", "0")]
        self.assertGreater(len(plain), len(cut[0]))
        self.assertGreater(len(cut[0]), len(cut[1]))
        self.assertGreater(len(cut[1]), 0)
        self.assertEqual(cut[2], [])

    def test_policies(self):
        def saved(*flags):
            return self.saved("--partition", "min-cut", *flags)

        self.assertEqual(saved("--policy", "nothing"), [])
        self.assertEqual(set(saved("--policy", "dots")), {"dot_general"})
        self.assertEqual(saved("--names", "hidden"), ["checkpoint_name"])
        self.assertEqual(saved("--names", "other"), [])
        self.assertEqual(saved("--policy", "everything"), self.saved())

    def test_picture_of_the_trade(self):
        self.saved("--partition", "min-cut", "--pareto",
                   self.path("trade.svg"))
        svg = xml.etree.ElementTree.parse(self.path("trade.svg")).getroot()
        name = "{http://www.w3.org/2000/svg}"
        self.assertEqual(svg.tag, name + "svg")
        self.assertEqual(len(svg.findall(name + "circle")), 21)
        texts = [text.text for text in svg.findall(name + "text")]
        self.assertIn("layers", texts)
        self.assertIn("budget 0", texts)

    def test_flags_that_do_not_fit(self):
        for flags in (["--budget", "0.5"], ["--policy", "dots"],
                      ["--names", "hidden"], ["--pareto", "trade.svg"]):
            self.fail_with("for --partition min-cut", "aot", "layers.rules",
                           "--fn", "layers", *flags)
        self.fail_with("excludes", "aot", "layers.rules", "--fn", "layers",
                       "--partition", "min-cut", "--policy", "dots", "--names",
                       "hidden")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
