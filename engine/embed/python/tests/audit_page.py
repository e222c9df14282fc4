"""Tables of testing/README.md that audits write.

    AuditPage("onnx").check(test, audit)

With CLEAVE_UPDATE set, as `bazel run TEST -- --update` has it, the table is
written instead.
"""

import os
import re

PAGE = "testing/README.md"


def rows_of(table: str) -> dict:
    """{(op, of): the cells behind}, of a table of Markdown."""
    found = {}
    for line in table.splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and cells[0].startswith("`"):
            found[cells[0], cells[1]] = cells[2:]
    return found


class AuditPage:
    """The table between the marks of a name."""

    def __init__(self, name: str):
        self.begin = f"<!-- audit-{name}: written by its test -->\n"
        self.end = f"<!-- audit-{name} ends -->\n"
        workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
        self.path = os.path.join(workspace, PAGE) if workspace else PAGE
        with open(self.path, encoding="utf-8") as file:
            self.page = file.read()

    @property
    def table(self) -> str:
        """The table as it stands."""
        return self.page.split(self.begin)[1].split(self.end)[0]

    def write(self, text: str) -> None:
        """Puts a text in the place of the table."""
        before, rest = self.page.split(self.begin)
        behind = rest.split(self.end)[1]
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(before + self.begin + text + "\n" + self.end + behind)

    def check(self, test, audit, part: bool = False) -> None:
        """The table has the rows of the audit, each with its causes; with
        `part` the audit is of some of the ops. The digits may differ from
        machine to machine, as PyTorch's kernels do."""
        test.assertEqual([f"{r.op} {r.subject} {r.dtype}" for r in audit.ours],
                         [], "our rules are wrong")
        test.assertEqual(
            [f"{r.op} {r.subject} {r.dtype}" for r in audit.unexplained], [],
            "nobody looked into these")
        text = f"{audit.summary()}.\n\n{audit.markdown()}"
        if os.environ.get("CLEAVE_UPDATE") and not part:
            self.write(text)
            return
        want = {key: cells[-1] for key, cells in rows_of(self.table).items()}
        got = {key: cells[-1] for key, cells in rows_of(text).items()}
        if part:
            ops = {f"`{r.op}`" for r in audit.rows}
            want = {key: c for key, c in want.items() if key[0] in ops}
        test.assertEqual(got, want, "--update writes the table")
