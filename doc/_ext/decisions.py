# SPDX-License-Identifier: Apache-2.0
"""Directive ``decisions``: every decision with its date and status, from the head of its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from from_the_code import Written, table
from sphinx.application import Sphinx


class Decisions(Written):
    """A table of the decisions that stand beside the page."""

    def lines(self) -> Iterator[str]:
        folder = Path(self.env.doc2path(self.env.docname)).parent
        rows = []
        for page in sorted(folder.glob("0*.rst")):
            self.env.note_dependency(str(page))
            fields = dict(re.findall(r"^:(\w+): (.+)$", page.read_text("utf-8"), re.MULTILINE))
            rows.append([f":doc:`{page.stem}`", fields["Date"], fields["Status"]])
        yield from table(["decision", "date", "status"], rows)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("decisions", Decisions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
