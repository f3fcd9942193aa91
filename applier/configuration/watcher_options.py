# SPDX-License-Identifier: Apache-2.0
"""The sections and options of Watcher, which may be in the same configuration file as ours.

``watcher_options.json`` has the names, and the release of Watcher that they are from.
``tools/watcher_options.py`` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

#: Watcher names a section after each of its plugins: ``[watcher_strategies.NAME]``.
_OF_PLUGINS = (
    "watcher_strategies.",
    "watcher_goals.",
    "watcher_scoring_engines.",
    "watcher_cluster_data_model_collectors.",
)


def has_section(section: str) -> bool:
    """Return whether Watcher reads a section."""
    return section in _sections() or section.startswith(_OF_PLUGINS)


def options(section: str) -> Sequence[str]:
    """Return the names of the options that Watcher reads in a section."""
    return _sections().get(section, ())


@cache
def _sections() -> Mapping[str, Sequence[str]]:
    text = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    found: Mapping[str, Sequence[str]] = json.loads(text)["sections"]
    return found
