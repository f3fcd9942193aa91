# SPDX-License-Identifier: Apache-2.0
"""Replaces the placeholders of Fuel's task sets, such as ``{MASTER_IP}``, in parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

#: What Fuel replaces, and where its settings have the value. Any other text between braces is left
#: as it is, unless the document has a value for it.
FUELS = {
    "CLUSTER_ID": ("cluster", "id"),
    "CN_HOSTNAME": ("public_ssl", "hostname"),
    "MASTER_IP": ("master_ip",),
    "OPENSTACK_VERSION": ("openstack_version",),
}


class Placeholders:
    """The values of placeholders: those of the document, else those in its settings."""

    def __init__(self, values: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        known = {name: _at(settings, place) for name, place in FUELS.items()}
        self._values = {k: v for k, v in known.items() if v is not None} | {**values}
        names = "|".join(map(re.escape, {**FUELS, **values}))
        self._pattern = re.compile(rf"(?<![${{])\{{({names})\}}")

    def replaced(self, value: Any, missing: Callable[[str], None]) -> Any:
        """Return a value with all placeholders in its texts replaced.

        One without a value is passed to ``missing``, and left. ``${NAME}``, of a shell, is none.

        >>> known = Placeholders({"A": 1}, {"cluster": {"id": 7}})
        >>> known.replaced(["x{A} {CLUSTER_ID}", "${A} {B}", "{MASTER_IP}"], print)
        MASTER_IP
        ['x1 7', '${A} {B}', '{MASTER_IP}']
        """
        if isinstance(value, Mapping):
            return {key: self.replaced(inner, missing) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.replaced(inner, missing) for inner in value]
        return self._pattern.sub(self._value(missing), value) if isinstance(value, str) else value

    def _value(self, missing: Callable[[str], None]) -> Callable[[re.Match[str]], str]:
        def value(found: re.Match[str]) -> str:
            if found[1] not in self._values:
                missing(found[1])
                return found[0]
            return str(self._values[found[1]])

        return value


def _at(settings: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings if isinstance(settings, str | int | float) else None
