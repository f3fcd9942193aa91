# SPDX-License-Identifier: Apache-2.0
"""Replaces the placeholders of Fuel's task sets, such as ``{MASTER_IP}``, in parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

#: What Fuel replaces. Any other text between braces is left as it is, unless it has a value.
FUELS = ("CLUSTER_ID", "CN_HOSTNAME", "MASTER_IP", "OPENSTACK_VERSION")


class Placeholders:
    """The values of placeholders: those of the document."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        names = "|".join(map(re.escape, {**dict.fromkeys(FUELS), **values}))
        self._pattern = re.compile(rf"(?<![${{])\{{({names})\}}")

    def replaced(self, value: Any, missing: Callable[[str], None]) -> Any:
        """Return a value with all placeholders in its texts replaced.

        One without a value is passed to ``missing``, and left. ``${NAME}``, of a shell, is none.

        >>> Placeholders({"A": 1}).replaced(["x{A}", "${A} {B}", "{MASTER_IP}"], print)
        MASTER_IP
        ['x1', '${A} {B}', '{MASTER_IP}']
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
