# SPDX-License-Identifier: Apache-2.0
"""Finds the options of a ``watcher.conf`` that Watcher's services read in another way."""

from __future__ import annotations

from pathlib import Path

from oslo_config import cfg

from applier.configuration import watcher_options
from applier.configuration.options import OWN
from planner.making.configuration_files import SetOption, entries, files_of
from planner.making.options import SECTION_IN_WATCHER

#: The options by section that Watcher's own planner of that name reads in another way.
_TWO_MEANINGS = {
    "watcher_planners.weight": ("weights", "parallelization"),
    "watcher_planners.workload_stabilization": ("weights",),
}


def is_of_watcher(file: Path) -> bool:
    """Return whether a file has a section that Watcher reads and our own commands do not.

    That is for example ``[database]`` or ``[nova]``.
    """
    ours = {group if isinstance(group, str) else group.name for group, _ in OWN}
    return any(
        watcher_options.has_section(section) and not section.startswith("watcher_planners.")
        for section in {entry.section for entry in entries(file)} - {*ours, "DEFAULT"}
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
