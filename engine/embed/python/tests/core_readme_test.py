"""The examples of README.md, run."""

import doctest
import pathlib
import unittest


class ReadmeTest(unittest.TestCase):

    def test_examples(self):
        page = pathlib.Path(__file__).resolve().parent.parent / "README.md"
        result = doctest.testfile(str(page), module_relative=False,
                                  optionflags=doctest.NORMALIZE_WHITESPACE)
        self.assertGreater(result.attempted, 25)
        self.assertEqual(result.failed, 0)


if __name__ == "__main__":
    unittest.main()
