# SPDX-License-Identifier: Apache-2.0
"""The simulated cloud as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from applier.cli.reporters.plan_table import cell, table_of


def tables(snapshot: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the table of hosts, and those of instances, volumes and faults, if they have rows."""
    yield _hosts(snapshot)
    if snapshot["instances"]:
        yield _instances(snapshot)
    if snapshot["volumes"]:
        yield _volumes(snapshot)
    if snapshot["faults"]:
        yield _faults(snapshot)


def _hosts(snapshot: Mapping[str, Any]) -> Table:
    table = table_of("host", "power", "service", "instances", "vcpus free", "ram free")
    on: dict[str | None, list[str]] = {}
    for instance in snapshot["instances"].values():
        on.setdefault(instance["host"], []).append(instance["name"])
    for name, host in snapshot["hosts"].items():
        service = snapshot["services"].get(name, {}).get("status", "-")
        style = "" if host["power"] == "on" else "yellow"
        free = host["free"]
        table.add_row(
            cell(name),
            cell(host["power"]),
            cell(service),
            cell(" ".join(on.get(name, [])) or "-"),
            f"{free['vcpus']} of {host['vcpus']}",
            f"{free['ram_mb']} of {host['ram_mb']} MB",
            style=style,
        )
    return table


def _instances(snapshot: Mapping[str, Any]) -> Table:
    table = table_of("instance", "uuid", "host", "flavor", "status")
    for uuid, instance in snapshot["instances"].items():
        table.add_row(
            cell(instance["name"]),
            cell(uuid),
            cell(instance["host"] or "-"),
            cell(instance["flavor"]),
            cell(instance["status"]),
        )
    return table


def _volumes(snapshot: Mapping[str, Any]) -> Table:
    table = table_of("volume", "uuid", "pool", "type", "size")
    for uuid, volume in snapshot["volumes"].items():
        size = f"{volume['size_gb']} GB"
        table.add_row(
            cell(volume["name"]),
            cell(uuid),
            cell(volume["pool"]),
            cell(volume["type"] or "-"),
            size,
        )
    return table


def _faults(snapshot: Mapping[str, Any]) -> Table:
    table = table_of("fault", "operation", "target", "times", "message")
    for fault in snapshot["faults"]:
        times = "always" if fault.get("times") is None else str(fault["times"])
        table.add_row(
            cell(fault["kind"]),
            cell(fault["operation"]),
            cell(str(fault["target"])),
            times,
            cell(fault.get("message") or ""),
        )
    return table
