# SPDX-License-Identifier: Apache-2.0
"""What Watcher reads of a configuration file that is its own and ours.

``watcher_options.json`` has the names of its sections and options, and the release that they are
from. ``tools/watcher_options.py`` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from oslo_config import cfg

from applier.configuration.options import BY_SECTION
from planner.making.configuration_files import SetOption, entries, files_of
from planner.making.options import SECTION_IN_WATCHER

#: Watcher names a section after each of its plugins: ``[watcher_strategies.NAME]``.
_OF_PLUGINS = (
    "watcher_strategies.",
    "watcher_goals.",
    "watcher_scoring_engines.",
    "watcher_cluster_data_model_collectors.",
)
#: The options by section that Watcher's own planner of that name reads in another way.
_TWO_MEANINGS = {
    "watcher_planners.weight": ("weights", "parallelization"),
    "watcher_planners.workload_stabilization": ("weights",),
}


def is_of_watcher(file: Path) -> bool:
    """Return whether a file has a section that Watcher reads and our own commands do not.

    That is for example ``[database]`` or ``[nova]``.
    """
    return any(
        has_section(section) and not section.startswith("watcher_planners.")
        for section in {entry.section for entry in entries(file)} - {*BY_SECTION, "DEFAULT"}
    )


def two_meanings(conf: cfg.ConfigOpts, planner: str) -> list[str]:
    """Return a warning if Watcher's services read options of a planner in another way, else [].

    Only options in files that these services read as well are meant: see :func:`is_of_watcher`.
    """
    section = f"watcher_planners.{planner}"
    found: list[SetOption] = [
        entry
        for file in files_of(conf)
        for entry in entries(file)
        if entry.section == section and entry.option in _TWO_MEANINGS.get(section, ())
    ]
    if not any(is_of_watcher(file) for file in {entry.file for entry in found}):
        return []
    places = ", ".join(entry.place for entry in found)
    return [
        f"{places}: here, the values are merged over the defaults and compared as numbers; "
        "Watcher's own planner takes them in place of all its defaults, and compares weights as "
        f"texts. What is meant for this product alone stands in [{SECTION_IN_WATCHER}]"
    ]


def has_section(section: str) -> bool:
    """Return whether Watcher reads a section."""
    return section in _sections() or section.startswith(_OF_PLUGINS)


def options_of(section: str) -> Sequence[str]:
    """Return the names of the options that Watcher reads in a section."""
    return _sections().get(section, ())


@cache
def _sections() -> Mapping[str, Sequence[str]]:
    text = Path(__file__).with_name("watcher_options.json").read_text(encoding="utf-8")
    found: Mapping[str, Sequence[str]] = json.loads(text)["sections"]
    return found
