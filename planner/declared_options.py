# SPDX-License-Identifier: Apache-2.0
"""Checks the options that a plugin declares, before anything reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg

from planner.errors import BrokenPlugin


def declared(what: str, name: str, plugin: Any) -> Sequence[cfg.Opt]:
    """Return the ``OPTIONS`` of a plugin.

    Raises BrokenPlugin if they are no options, or if two of them have the same name in a file.
    """
    options = getattr(plugin, "OPTIONS", ())
    # Several callers read it, and a generator has its options only once.
    if not isinstance(options, Sequence) or not all(isinstance(o, cfg.Opt) for o in options):
        raise BrokenPlugin(what, name, "its OPTIONS are not a list of oslo.config options")
    for option, number in Counter(o.dest for o in options).items():
        if number > 1:
            raise BrokenPlugin(what, name, f"it declares two options {option!r}")
    return tuple(options)
