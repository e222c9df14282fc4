#!/usr/bin/python3
"""Reads the pages that `doc --html` writes, as XML: strictly.

    reference_test.py CLEAVE RULES
"""

import os
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import (  # pylint: disable=wrong-import-position
    CommandTest,
)

NAMESPACE = "{http://www.w3.org/1999/xhtml}"

# Text that would be markup, if it were not escaped.
HOSTILE = """\
language 1

/// </p></article><script>alert("doc")</script> & 'quoted' ]]> <!-- `<b>`
op wrong(x: T[S..], *, mode: str = "<&>") -> T[S..]
  where T: float
  error value "</pre><img src=x onerror=alert(1)>" if mode == "<b>"
  spec y[s..] = if mode == "&" then x[s..] else select(x[s..] < 0, 0, x[s..])
  accuracy T within 1 ulp
{
  // <script>alert("comment")</script>
  if mode == "&" then x else max(x, 0)
}
"""


class ReferenceTest(CommandTest):
    def pages(self, *args):
        run = self.run_cleave("doc", *args, "--html", "pages")
        self.assertEqual(run.returncode, 0, run.stderr)
        pages = {}
        for name in os.listdir(self.path("pages")):
            with open(self.path(f"pages/{name}"), encoding="utf-8") as file:
                pages[name] = xml.etree.ElementTree.fromstring(file.read())
        return pages

    def text(self, element):
        return "".join(element.itertext())

    def article(self, page, op):
        found = [e for e in page.iter(NAMESPACE + "article")
                 if e.attrib["id"] == f"op-{op}"]
        self.assertEqual(len(found), 1, op)
        return found[0]

    def test_links_lead_to_articles_and_ids_are_unique(self):
        pages = self.pages("relu", "gelu", "softmax", "aten.gelu", "onnx.Gelu")
        self.assertIn("index.html", pages)
        ids = {}
        for name, page in pages.items():
            found = [e.attrib["id"] for e in page.iter() if "id" in e.attrib]
            self.assertEqual(len(found), len(set(found)), name)
            ids[name] = found
        links = [(name, e.attrib["href"]) for name, page in pages.items()
                 for e in page.iter(NAMESPACE + "a")]
        self.assertGreater(len(links), 12)
        for name, link in links:
            page, _, anchor = link.partition("#")
            self.assertIn(page, pages, name)
            if anchor:
                self.assertIn(anchor, ids[page], name)

    def test_an_article_has_all_parts(self):
        pages = self.pages("gelu", "aten.gelu", "onnx.Gelu")
        gelu = self.article(pages["core.gelu.html"], "gelu")
        titles = [self.text(e) for e in gelu.iter(NAMESPACE + "h4")]
        for title in ("Signature", "Special values", "Accuracy, claimed",
                      "Accuracy, measured", "Names in frameworks", "vmap",
                      "jvp", "vjp"):
            self.assertIn(title, titles)
        self.assertTrue(list(gelu.iter(NAMESPACE + "math")))
        svg = "{http://www.w3.org/2000/svg}"
        curves = [e.attrib["class"] for e in gelu.iter(svg + "path")]
        self.assertEqual(curves.count("value"), 1)
        self.assertEqual(curves.count("slope"), 1)
        names = [self.text(e) for e in gelu.iter(NAMESPACE + "a")]
        self.assertIn("aten.gelu", names)
        self.assertIn("onnx.Gelu", names)
        self.assertIn("def gelu_jvp", self.text(gelu))
        # The host's op says what it stands for.
        page = next(n for n in pages if n.startswith("aten."))
        aten = self.article(pages[page], "aten.gelu")
        self.assertIn("gelu", [self.text(e) for e in aten.iter(NAMESPACE + "a")])
        self.assertIn("aten gelu(Tensor self", self.text(aten))

    def test_hostile_rules_are_shown_as_they_stand(self):
        self.write("<b>&\"'.rules", HOSTILE)
        pages = self.pages("wrong", "--rules", "<b>&\"'.rules")
        self.assertEqual(len(pages), 2)
        page = next(p for n, p in pages.items() if n != "index.html")
        tags = [e.tag for e in page.iter()]
        for tag in ("script", "img", "link", "iframe", "object", "b"):
            self.assertNotIn(NAMESPACE + tag, tags)
        text = self.text(page)
        for shown in ('<script>alert("doc")</script>', '<script>alert("comment")',
                      "</pre><img src=x onerror=alert(1)>"):
            self.assertIn(shown, text)
        # The index has the script of its search box, and no other.
        scripts = list(pages["index.html"].iter(NAMESPACE + "script"))
        self.assertEqual(len(scripts), 1)
        self.assertNotIn("src", scripts[0].attrib)

    def test_a_file_named_index_has_a_page_of_its_own(self):
        self.write("index.rules", HOSTILE)
        pages = self.pages("wrong", "--rules", "index.rules")
        self.assertEqual(set(pages), {"index.html", "index.rules.html"})

    def test_pages_need_no_network(self):
        for page in self.pages("relu").values():
            for element in page.iter():
                for name in ("src", "href"):
                    self.assertNotIn("//", element.attrib.get(name, ""))
            self.assertNotIn("@import", self.text(page))
            self.assertNotIn("url(", self.text(page))

    def test_a_folder_that_cannot_be_made_is_an_error(self):
        self.write("file", "")
        self.fail_with("cannot make", "doc", "relu", "--html", "file/pages")

    def test_an_unknown_op_is_an_error(self):
        self.fail_with("there is no op `gelo` (did you mean `gelu`?)", "doc",
                       "gelo", "--html", "pages")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
