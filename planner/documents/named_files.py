# SPDX-License-Identifier: Apache-2.0
"""Adds to a document what is in the files that it names."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from planner.contract import Planner
from planner.documents import Document, inventory, playbook, read
from planner.errors import InvalidInput, Mistake, Path, shown
from planner.plan.extent import listed


def completed(document: Document, planner: type[Planner[Any]]) -> Document:
    """Return a document with the contents of all files that it names; raises InvalidInput."""
    plain = {f: target for f, target in planner.FILES.items() if f not in planner.PLAYBOOKS}
    found = with_files(document, plain, planner.INVENTORIES)
    for field in planner.PLAYBOOKS:
        found = _with_plays(found, field, planner.FILES[field])
    return found


def _with_plays(document: Document, field: str, target: str) -> Document:
    """Add the plays of a playbook, unless they are there already; make names absolute paths."""
    value, folder = dict(document.value), FilePath(document.source or "").parent.resolve()
    names = [value.get(field), *listed(value.get("inventory"))]
    if target in value or len(names) < 2 or not all(isinstance(n, str) and n for n in names):
        return document
    if mistakes := [
        Mistake(f"there is no file {name!r}", ("inventory" if i else field,))
        for i, name in enumerate(names)
        if not os.path.exists(folder / name)
    ]:
        raise InvalidInput(mistakes)
    path, *paths = (str(folder / name) for name in names)
    found = playbook.read_plays(value, path, paths)
    value |= {field: path, target: found.value}
    value["inventory"] = paths if isinstance(value["inventory"], list) else paths[0]
    brought = {**document.brought, (target,): (found, ())}
    return replace(
        document, value=value, brought=brought, warnings=[*document.warnings, *found.warnings]
    )


def with_files(
    document: Document, fields: Mapping[str, str], inventories: Collection[str] = ()
) -> Document:
    """Return a document with the contents of the files that it names, relative to its own folder.

    ``fields`` is ``planner.contract.Planner.FILES``: it names the fields that receive the contents.
    ``inventories`` is ``Planner.INVENTORIES``: the file of such a field may be an inventory, of
    which the hosts are read that ``limit`` beside the field selects.
    A value that is neither a text nor a list of texts is left for the schema to refuse. If entries
    of several files have one ``id``, the last takes the place of the others; there is one warning
    for each file that replaces some. Raises InvalidInput for each file that cannot be read, and for
    a document that has both a field that names a file and the field that receives its content.
    """
    value, brought = dict(document.value), dict(document.brought)
    mistakes: list[Mistake] = []
    warnings = [*document.warnings]
    folder = FilePath(document.source or "").parent
    for field_of_names, field_of_content in fields.items():
        names, target = field_of_names.split(".")[-1], field_of_content.split(".")[-1]
        at = tuple(field_of_names.split(".")[:-1])
        holder = _copied_at(value, at)
        named = holder.get(names)
        places: dict[Any, int] = {}
        for i, name in enumerate(named if isinstance(named, list) else [named]):
            if not isinstance(name, str):
                continue
            if named is name and target != names and target in holder:
                text = f"{target!r} is set as well: set only one of them"
                path = (*at, names)
                mistakes.append(Mistake(text, path, document.locate(path)))
                continue
            is_inventory = False
            try:
                if field_of_names in inventories:
                    limit = holder.get("limit")
                    pattern = limit if isinstance(limit, str) else None
                    found, is_inventory = inventory.read_nodes(folder / name, pattern)
                else:
                    found = read(folder / name, last_holds=True)
            except InvalidInput as wrong:
                mistakes += wrong.mistakes
                continue
            if not isinstance(named, list):
                del holder[names]
                if is_inventory:
                    holder.pop("limit", None)
                holder[target], brought[(*at, target)] = found.value, (found, ())
                warnings += found.warnings
                continue
            own = holder.get(target) or []
            if not isinstance(found.value, list):
                text = f"the list of {target} is expected, which {names}[{i}] names"
                mistakes.append(Mistake(text, place=f"{found.source}:1"))
            elif isinstance(own, list):
                holder[target], where = _overlaid(own, found.value, places)
                brought |= {(target, n): (found, (k,)) for k, n in enumerate(where)}
                warnings += [*found.warnings, *_replaced(target, own, where, found.source)]
    if mistakes:
        raise InvalidInput(mistakes)
    return replace(document, value=value, brought=brought, warnings=warnings)


def _overlaid(
    old: Sequence[Any], new: Sequence[Any], places: dict[Any, int]
) -> tuple[list[Any], list[int]]:
    """Return a list with the entries of one more file, and the index of each of them.

    An entry with the id of one of an earlier file takes its place. ``places`` has these by id, and
    is updated.
    """
    entries, where, taken = [*old], [], dict[Any, int]()
    for entry in new:
        name = _id(entry)
        place = places.pop(name, len(entries)) if name is not None else len(entries)
        entries[place : place + 1] = [entry]
        where.append(place)
        taken.setdefault(name, place)
    places |= taken
    return entries, where


def _replaced(
    target: str, own: Sequence[Any], where: Sequence[int], source: str | None
) -> list[Mistake]:
    """Return one warning for all entries of a file that replace those of earlier files."""
    names = [str(_id(own[n])) for n in where if n < len(own)]
    text = f"replaces {target} of earlier files: {', '.join(shown(names))}"
    return [Mistake(text, place=source)] if names else []


def _id(entry: Any) -> Any:
    found = entry.get("id") if isinstance(entry, Mapping) else None
    return found if isinstance(found, str) else None


def _copied_at(value: dict[str, Any], path: Path) -> dict[str, Any]:
    """Copy the mappings along a path in place; return the last, or an empty one if it has none."""
    for key in path:
        inner = value.get(str(key))
        if not isinstance(inner, Mapping):
            return {}
        value[str(key)] = value = dict(inner)
    return value
