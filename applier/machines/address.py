# SPDX-License-Identifier: Apache-2.0
"""How a node is reached over SSH: its address, ``[user@]host[:port]``, and the settings."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True, slots=True)
class SshSettings:
    """How nodes are reached over SSH; without ``keys`` (files) the defaults of ssh are tried.

    ``reconnect_timeout_s`` is how long a lost connection is tried again while a command runs.
    """

    known_hosts: str = "~/.ssh/known_hosts"
    keys: tuple[str, ...] = ()
    connect_timeout_s: float = 10.0
    reconnect_timeout_s: float = 300.0

    @property
    def known_hosts_path(self) -> str:
        """Return the absolute path of the file of host keys."""
        return os.path.abspath(os.path.expanduser(self.known_hosts))

    @property
    def key_paths(self) -> tuple[str, ...]:
        """Return the absolute paths of the private keys."""
        return tuple(os.path.abspath(os.path.expanduser(key)) for key in self.keys)
