# SPDX-License-Identifier: Apache-2.0
"""Hidden parameters of templates: replaces each value by a placeholder.

Decision 0034 describes the information about hidden values that a plan contains.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

#: With this begins a placeholder.
HIDDEN = "${NoEcho "
_SHOWN = frozenset({"false", "f", "no", "n", "off", "0", "none"})


def names(*templates: Mapping[str, Any]) -> set[str]:
    """Return the names of parameters that are marked ``NoEcho`` or, in Heat's form, ``hidden``.

    A parameter counts if any of the templates marks it.

    >>> names({"Parameters": {"Password": {"NoEcho": "true"}, "Image": {"NoEcho": False}}})
    {'Password'}
    """
    sections = [t.get(key) for t in templates for key in ("Parameters", "parameters")]
    return {
        name
        for section in sections
        if isinstance(section, Mapping)
        for name, declared in section.items()
        if isinstance(declared, Mapping)
        and any(str(declared.get(k, False)).lower() not in _SHOWN for k in ("NoEcho", "hidden"))
    }


def placeholder(name: str, value: Any) -> Any:
    """Return a placeholder for a value; in a list or mapping, replace each value inside.

    Equal values of a parameter have equal placeholders, different ones different placeholders. A
    number is equal to its text, as in Heat.

    >>> placeholder("Password", "s3cret"), placeholder("Ports", [80, "80"])
    ('${NoEcho Password f32e224b}', ['${NoEcho Ports 14fdf495}', '${NoEcho Ports 14fdf495}'])
    """
    if isinstance(value, Mapping):
        return {key: placeholder(name, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [placeholder(name, inner) for inner in value]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{HIDDEN}{name} {_digest(name, text)}}}"


@lru_cache(maxsize=1000)
def _digest(name: str, text: str) -> str:
    """Return eight hex digits of a slow hash: it makes guessing a password from them slow."""
    key = hashlib.scrypt(text.encode(), salt=name.encode(), n=2**14, r=8, p=1, dklen=4)
    return key.hex()
