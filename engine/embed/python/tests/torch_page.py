"""Runs the blocks of torch.md, in order.

    python -m unittest torch_page
"""

import contextlib
import io
import pathlib
import re
import unittest

from torch_testing import HAVE_TORCH, WHY

_PAGE = pathlib.Path(__file__).parent.parent / "torch.md"


@unittest.skipUnless(HAVE_TORCH, WHY)
class Page(unittest.TestCase):
    """The page says what happens."""

    def test_blocks_run(self):
        text = _PAGE.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
        self.assertGreater(len(blocks), 5)
        names: dict = {}
        with contextlib.redirect_stdout(io.StringIO()):
            for block in blocks:
                exec(compile(block, str(_PAGE), "exec"), names)  # noqa: S102


if __name__ == "__main__":
    unittest.main()
