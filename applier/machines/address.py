# SPDX-License-Identifier: Apache-2.0
"""The address of a node: ``[user@]host[:port]``."""

from __future__ import annotations

import re
from typing import NamedTuple

#: A regular expression for addresses, for JSON Schema and Python. An IPv6 address is in brackets.
#: Neither user nor host may begin with ``-``, because programs would read it as an option.
PATTERN = (
    r"^([^\s:@\[\]-][^\s:@\[\]]*@)?(\[[0-9A-Fa-f:.%\w]+\]|[^\s:@\[\]-][^\s:@\[\]]*)(:[0-9]+)?$"
)


class Address(NamedTuple):
    """Parts of an address; user and port are None if absent."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        """Return the form used in messages: ``10.0.0.3 port 2222``."""
        return f"{self.host} port {self.port}" if self.port else self.host


def parse(text: str) -> Address:
    """Parse an address. Raises ValueError.

    >>> parse("root@[fe80::1]:2222")
    Address(host='fe80::1', user='root', port=2222)
    >>> parse("node-3")
    Address(host='node-3', user=None, port=None)
    """
    found = re.fullmatch(PATTERN, text)
    port = int(found[3][1:]) if found and found[3] else None
    if found is None or (port is not None and not 0 < port < 65536):
        raise ValueError(f"{text!r} is not an address; accepted is [user@]host[:port]")
    return Address(found[2].strip("[]"), found[1][:-1] if found[1] else None, port)


def host_of(text: object) -> str | None:
    """Return the host of an address, or None if it is not valid."""
    try:
        return parse(text).host if isinstance(text, str) else None
    except ValueError:
        return None
