# SPDX-License-Identifier: Apache-2.0
"""The errors for a host whose key is unknown or has changed, with the next step."""

from __future__ import annotations

import os

import asyncssh

from applier.errors import ActionFailed
from applier.machines.address import Address

_SSH_PORT = 22


def readable(address: Address, known_hosts: str) -> str:
    """Return the path ``known_hosts``. Raises ActionFailed if the file cannot be read."""
    if not os.path.isfile(known_hosts):
        raise unknown(address, known_hosts)
    if not os.access(known_hosts, os.R_OK):
        raise ActionFailed(f"the host keys in {known_hosts} cannot be read: Permission denied")
    return known_hosts


def refusal(address: Address, known_hosts: str, reason: Exception) -> Exception:
    """Return the error for a host whose key was refused."""
    keys, authorities, revoked, *_ = asyncssh.match_known_hosts(
        known_hosts, address.host, "", address.port or _SSH_PORT
    )
    if isinstance(reason, asyncssh.KeyExchangeFailed) and not keys:
        return ConnectionError(f"no connection to {address}: {reason}")
    if not (keys or authorities or revoked):
        return unknown(address, known_hosts)
    name = _name(address)
    return ActionFailed(
        f"the host key of {address} is not the one that {known_hosts} expects: either the node was "
        "installed anew, or another machine answers in its place. If its new key is right, "
        f"ssh-keygen -R '{name}' -f {known_hosts} removes the old one, and {_scan(address)} "
        f">> {known_hosts} adds the new one"
    )


def unknown(address: Address, known_hosts: str) -> ActionFailed:
    """Return the error for a host without a key on file, with the command that adds one."""
    return ActionFailed(
        f"{known_hosts} has no host key of {address}: compare the fingerprint with the node's own, "
        f"then {_scan(address)} >> {known_hosts} adds it"
    )


def _name(address: Address) -> str:
    port = address.port or _SSH_PORT
    return address.host if port == _SSH_PORT else f"[{address.host}]:{port}"


def _scan(address: Address) -> str:
    port = f"-p {address.port} " if address.port else ""
    return f"ssh-keyscan {port}{address.host}"
