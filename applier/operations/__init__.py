# SPDX-License-Identifier: Apache-2.0
"""What operators do with the plans of a record: one function for each operation, for every edge.

A function raises if it refuses, and returns when the record is changed. What was done is told in
sentences, so that every edge tells the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """Who asks for an operation, and who is told about it.

    ``name`` is written into the record. ``say`` is called with each sentence about what was done,
    ``note`` with each one about what was noticed meanwhile.
    """

    name: str
    say: Tell
    note: Tell
