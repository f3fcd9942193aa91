# SPDX-License-Identifier: Apache-2.0
"""Places the names of bars: inside, else beside them, so that no two overlap. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from applier.timeline.words import cut, small_width

#: The space on each side of a text, in pixels.
_GAP = 4.0


class Place(NamedTuple):
    """A bar in a row, in pixels, with the text that it should have and its mark.

    ``inner`` is the left end of the part for text, to the right of earlier attempts. ``is_crossed``
    is true if the bar is drawn with crosses, on which text needs an outline.
    """

    left: float
    inner: float
    right: float
    text: str
    mark: str
    is_crossed: bool = False


class BarLabel(NamedTuple):
    """A text, its left end, and whether it is inside a bar without crosses: it needs no outline."""

    x: float
    text: str
    is_inside: bool


def labels(places: Sequence[Place], left: float, right: float) -> list[BarLabel]:
    """Return the labels of a row of bars between ``left`` and ``right``; labels do not overlap.

    A text is inside its bar if it fits there, else to the right or to the left of it. A text that
    fits nowhere is cut. If too little of it is left, only the mark is shown, or nothing.
    """
    found = []
    for i, place in enumerate(places):
        beyond = places[i + 1].left if i + 1 < len(places) else right
        spaces = [
            (place.inner, place.right, True),
            (place.right, beyond, False),
            (left, place.left, False),
        ]
        text, best = _best(place, spaces)
        if text:
            start, end, is_inside = best
            is_left = end == place.left and not is_inside
            x = end - _GAP - small_width(text) if is_left else start + _GAP
            found.append(BarLabel(x, text, is_inside and not place.is_crossed))
            left = max(left, x + small_width(text))
        left = max(left, place.right)
    return found


_Space = tuple[float, float, bool]


def _best(place: Place, spaces: Sequence[_Space]) -> tuple[str, _Space]:
    rooms = [(end - start - 2 * _GAP, (start, end, inside)) for start, end, inside in spaces]
    whole = f"{place.mark} {place.text}".strip()
    for room, space in rooms:
        if small_width(whole) <= room:
            return whole, space
    room, space = max(rooms, key=lambda r: r[0])
    text = cut(whole, room)
    # The mark alone is clearer than the mark, one letter and an ellipsis.
    if place.mark and len(text) < 5:
        for room, space in rooms:
            if small_width(place.mark) <= room + _GAP:
                return place.mark, space
        return "", spaces[0]
    return (text if len(text) > 3 else ""), space
