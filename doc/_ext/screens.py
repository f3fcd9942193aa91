# SPDX-License-Identifier: Apache-2.0
"""Directive ``screen``: pictures of a screen at each width, on a light and on a dark display."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from from_the_code import Written
from sphinx.application import Sphinx

#: The width of a display in pixels, and the share of a line that its picture has, in percent.
SHARES = {400: 13, 1000: 33, 1600: 50}


class Screen(Written):
    """The pictures whose names begin with the first word; the other words say what they show."""

    required_arguments = 1
    final_argument_whitespace = True

    def lines(self) -> Iterator[str]:
        name, _, said = self.arguments[0].partition(" ")
        for theme in ("light", "dark"):
            for width, share in SHARES.items():
                yield f".. image:: /_static/pages/{name}-{theme}-{width}.png"
                yield f"   :alt: {said}, {theme}, {width} pixels wide"
                yield f"   :width: {share}%"
                yield ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("screen", Screen)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
