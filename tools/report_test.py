#!/usr/bin/python3
"""Reads the page that `check --report` writes, as XML: strictly.

    report_test.py CHECKER RULES
"""

import collections
import os
import re
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import (  # pylint: disable=wrong-import-position
    CommandTest,
)

NAMESPACE = "{http://www.w3.org/1999/xhtml}"

# Text that would be markup, if it were not escaped; a counterexample; a branch that
# no sample reaches.
HOSTILE = """\
language 1

/// </p></article><script>alert("doc")</script> & 'quoted' ]]> <!-- `<b>`
op wrong(x: T[S..]) -> T[S..]
  where T: float
  error value "</pre><img src=x onerror=alert(1)>" if len(S) > 9
  spec y[s..] = x[s..] + 1
  accuracy T within 1 ulp
{
  // <script>alert("comment")</script>
  x + 2
}

/// Seldom.
op right(x: T[n]) -> T[n]
  where T: float
  spec y[i] = 2 * x[i]
  accuracy T within 1 ulp
{
  if n == 4000 then 2 * x else x + x
}
"""


class ReportTest(CommandTest):
    def page(self, name, text):
        self.write(name, text)
        self.assertEqual(
            self.run_cleave("check", name, "--report", "page").returncode, 1)
        self.assertEqual(os.listdir(self.path("page")), ["index.html"])
        with open(self.path("page/index.html"), encoding="utf-8") as file:
            return file.read()

    def elements(self, page, tag):
        root = xml.etree.ElementTree.fromstring(page)
        return list(root.iter(NAMESPACE + tag))

    def test_a_page_of_hostile_rules_is_whole(self):
        page = self.page("<b>&\"'.rules", HOSTILE)
        root = xml.etree.ElementTree.fromstring(page)
        tags = collections.Counter(element.tag for element in root.iter())
        for tag in ("script", "img", "link", "iframe", "object", "b"):
            self.assertEqual(tags[NAMESPACE + tag], 0, tag)
        # Shown as they stand in the rules.
        text = "".join(root.itertext())
        for shown in ('<script>alert("doc")</script>',
                      '// <script>alert("comment")</script>',
                      'error value "</pre><img src=x onerror=alert(1)>"',
                      "<b>&\"'.rules:4"):
            self.assertIn(shown, text)
        for attribute in ("onerror", "onclick", "src"):
            self.assertFalse(any(attribute in element.attrib
                                 for element in root.iter()))

    def test_it_says_what_the_check_found(self):
        page = self.page("new.rules", HOSTILE)
        text = " ".join("".join(
            xml.etree.ElementTree.fromstring(page).itertext()).split())
        self.assertIn("1 of 2 rules refuted", text)
        self.assertIn("L3 disagrees", text)
        self.assertIn("no checked call takes this branch", text)
        self.assertIn("op right_with_jvp(", text)
        ids = [element.attrib["id"]
               for element in self.elements(page, "article")]
        self.assertEqual(sorted(ids), ["op-right", "op-wrong"])
        self.assertEqual(len(re.findall("<figure", page)), 2)

    def test_its_links_stay_in_the_page(self):
        page = self.page("new.rules", HOSTILE)
        root = xml.etree.ElementTree.fromstring(page)
        ids = [element.attrib["id"] for element in root.iter()
               if "id" in element.attrib]
        self.assertEqual(len(ids), len(set(ids)))
        links = self.elements(page, "a")
        self.assertGreater(len(links), 4)
        for link in links:
            self.assertEqual(link.attrib["href"][0], "#")
            self.assertIn(link.attrib["href"][1:], ids)
        self.assertNotIn("@import", page)
        self.assertNotIn("url(", page)

    def test_its_tables_have_headers(self):
        page = self.page("new.rules", HOSTILE)
        tables = self.elements(page, "table")
        self.assertGreater(len(tables), 3)
        for table in tables:
            for row in table.iter(NAMESPACE + "tr"):
                headers = list(row.iter(NAMESPACE + "th"))
                self.assertGreater(len(headers), 0)
                for header in headers:
                    self.assertIn(header.attrib["scope"], ("row", "col"))
        root = xml.etree.ElementTree.fromstring(page)
        self.assertEqual(root.attrib["lang"], "en")
        for svg in root.iter("{http://www.w3.org/2000/svg}svg"):
            self.assertEqual(svg.attrib["role"], "img")

    def test_it_is_made_again_and_a_file_is_no_folder(self):
        first = self.page("new.rules", HOSTILE)
        again = self.page("new.rules", HOSTILE)
        seconds = r"[0-9.e-]+ seconds"
        self.assertEqual(re.sub(seconds, "", first), re.sub(seconds, "", again))
        self.fail_with("cannot make page/index.html", "check", "new.rules",
                       "--report", "page/index.html")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
