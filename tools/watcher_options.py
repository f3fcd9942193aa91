# SPDX-License-Identifier: Apache-2.0
"""Writes applier/configuration/watcher_options.json: the options of Watcher, by section.

In a virtual environment that has python-watcher (its data files bring the first argument's file)::

    oslo-config-generator --format json --output-file options.json \
        --config-file etc/watcher/oslo-config-generator/watcher.conf
    tools/watcher_options.py options.json 17.0.0
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "applier" / "configuration" / "watcher_options.json"

#: What Watcher reads and its generator does not list.
UNLISTED = {"DEFAULT": ["notification_level"]}


def names_of(options: list[dict[str, Any]]) -> list[str]:
    """Return all names of options, the deprecated ones included."""
    found = {name for option in options for name in (option["name"], option["dest"])}
    found |= {
        old["name"] for option in options for old in option["deprecated_opts"] if old.get("name")
    }
    return sorted(found)


def main() -> None:
    """Read what the generator wrote, and write the names only."""
    file, version = sys.argv[1:]
    groups = json.loads(Path(file).read_text(encoding="utf-8"))["options"]
    sections: dict[str, list[str]] = {}
    for section, group in groups.items():
        sections[section] = names_of(group["opts"])
        for option in group["opts"]:
            for old in option["deprecated_opts"]:
                if old.get("group") and old["group"] not in groups:
                    sections.setdefault(old["group"], [])
    for section, names in UNLISTED.items():
        sections[section] = sorted({*sections[section], *names})
    value = {"source": f"python-watcher {version}", "sections": sections}
    TARGET.write_text(f"{json.dumps(value, indent=1, sort_keys=True)}\n", encoding="utf-8")


main()
