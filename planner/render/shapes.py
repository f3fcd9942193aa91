# SPDX-License-Identifier: Apache-2.0
"""The shapes of all pictures, as elements of SVG: text, boxes, a legend, the document around them.

Pictures contain no script, and get their look from the style sheet in :mod:`planner.render.look`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from unicodedata import east_asian_width

from planner.render.look import LOOKS, style_of_a_picture

#: The width of a letter in pixels, and that of one in small text. Rather too large than too small.
LETTER, SMALL = 6.9, 6.9 * 11 / 12
#: The height of a row of the legend, and the width and height of the samples in it.
_ROW, _SAMPLE, _HIGH = 20.0, 24, 15


def element(tag: str, content: str = "", /, **attributes: object) -> str:
    """Return an element; ``kind`` is its class, and numbers are rounded to a tenth of a pixel.

    >>> element("rect", kind="run", x=1.25, rx=2), element("g", "<path/>", aria_hidden="true")
    ('<rect class="run" x="1.2" rx="2"/>', '<g aria-hidden="true"><path/></g>')
    """
    found = "".join(
        f' {"class" if name == "kind" else name.replace("_", "-")}="{_written(value)}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{found}>{content}</{tag}>" if content else f"<{tag}{found}/>"


def _written(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def rectangle(
    kind: str, left: float, top: float, width: float, height: float, **more: object
) -> str:
    """Return a rectangle; all numbers are pixels."""
    place = {"x": float(left), "y": float(top), "width": float(width), "height": float(height)}
    return element("rect", kind=kind, **place, **more)


def text(kind: str, x: float, y: float, said: str, **more: object) -> str:
    """Return a line of text, escaped; ``y`` is its middle."""
    return element("text", _content(said), kind=kind, x=float(x), y=float(y), **more)


def printable(said: str) -> str:
    """Replace each character that cannot be printed, such as a line break, by a space."""
    return "".join(c if c.isprintable() else " " for c in said)


def _content(said: str) -> str:
    return escape(printable(said), quote=False)


def titled(kind: str, lines: Iterable[str], content: str, **more: object) -> str:
    """Return a group that is one thing for screen readers, with a title for them and the mouse."""
    title = element("title", "\n".join(map(_content, lines)))
    return element("g", title + content, kind=kind, role="img", **more)


def group(kind: str, title: str, content: str) -> str:
    """Return a group of things that screen readers find one by one, with a title."""
    return element("g", element("title", _content(title)) + content, kind=kind, role="group")


def width_of(said: str, letter: float = LETTER) -> float:
    """Estimate the width of a text in pixels; the estimate is rather too large."""
    return sum(2 * letter if east_asian_width(c) in "WF" else letter for c in said)


def swatch(kind: str, word: str, more: str = "") -> str:
    """Return the sample of a state for the legend; ``kind`` is the class of what has states."""
    shape = rectangle("run", 0, 0, _SAMPLE, _HIGH, rx=3) + more
    mark = text("mark", _SAMPLE / 2, 8, LOOKS[word].mark) if LOOKS[word].mark else ""
    return element("g", shape, kind=f"{kind} {word}") + mark


def head(
    title: str, entries: Iterable[tuple[str, str]], left: float, width: float
) -> tuple[list[str], float, float]:
    """Return the title and the legend of a picture, the y of their lower edge, and their width.

    An entry is a sample, or an empty text, and its meaning. Entries that exceed ``width`` continue
    in the next row.
    """
    out = [text("plan-name", left, 22, title)]
    x, y, widest = left, 48.0, len(title) * 10.5
    for sample, meaning in entries:
        room = (_SAMPLE + 6 if sample else 0) + width_of(meaning, SMALL) + 16
        if x > left and x + room > left + width + 16:
            x, y = left, y + _ROW
        at = x
        if sample:
            out.append(element("g", sample, transform=f"translate({x:.1f} {y - 8:.1f})"))
            at += _SAMPLE + 6
        out.append(text("note", at, y, meaning))
        x += room
        widest = max(widest, x - left)
    return out, y + _ROW, widest


def document(
    title: str, width: float, height: float, parts: Sequence[str], *, own_style: bool = False
) -> str:
    """Return a picture; with ``own_style``, it can stand in a file of its own."""
    size = {"width": f"{width:.0f}", "height": f"{height:.0f}"}
    style = element("style", style_of_a_picture()) if own_style else ""
    content = "\n".join(
        [
            f"{element('title', _content(title))}{style}",
            element("rect", kind="page", **size),
            *parts,
        ]
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawn" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
            'role="graphics-document document">',
            content,
            "</svg>",
            "",
        ]
    )
