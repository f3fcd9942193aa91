# SPDX-License-Identifier: Apache-2.0
"""The durations of earlier runs as tables, and as documents that another record imports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from applier.assembly import Assembly
from applier.operations import Operator
from applier.run.expected_durations import CAUTIOUS, SamplesOfType
from applier.store.runs import MOST, Sample
from applier.wording import count
from planner.errors import InvalidInput, Mistake
from planner.schemas import checking
from planner.schemas.ranges import NAME, NAME_OR_NULL, SECONDS

if TYPE_CHECKING:
    from planner.documents import Document

#: The format of a document with durations.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["durations"],
    "additionalProperties": False,
    "properties": {
        "durations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["action_type", "seconds"],
                "additionalProperties": False,
                "properties": {
                    "action_type": NAME,
                    "size": NAME_OR_NULL,
                    "node": NAME_OR_NULL,
                    "seconds": {"type": "array", "items": SECONDS},
                },
            },
        }
    },
}


class Known(NamedTuple):
    """The expected durations of actions of a type and, if they are not None, a size and a node.

    ``imported`` is how many of the ``samples`` were imported. 9 in 10 actions take at most
    ``nine_in_ten_s``.
    """

    action_type: str
    size: str | None
    node: str | None
    samples: int
    imported: int
    median_s: float
    nine_in_ten_s: float


def listed(assembly: Assembly) -> Iterator[Known]:
    """Yield the durations that forecasts expect for each type, size and node that has samples.

    They are sorted by type, size and node.
    """
    store = assembly.store
    names = sorted({*assembly.action_types, *store.imported_types()})
    for name, samples in store.durations(names).items():
        if not samples:
            continue
        pooled = SamplesOfType(samples)
        kinds = Counter((s.size or "", s.node or "") for s in samples)
        imported = Counter((s.size or "", s.node or "") for s in samples if s.imported)
        for (size, node), number in sorted(kinds.items()):
            found = pooled.pooled(size or None, node or None)
            yield Known(
                *(name, size or None, node or None, number, imported[size, node]),
                *(found.quantile(0.5), found.quantile(CAUTIOUS)),
            )


def exported(assembly: Assembly) -> dict[str, Any]:
    """Return a document with the durations that were measured here, not imported; latest first."""
    durations = []
    for name, samples in assembly.store.durations(sorted(assembly.action_types)).items():
        groups: defaultdict[tuple[str | None, str | None], list[float]] = defaultdict(list)
        for sample in samples:
            if not sample.imported:
                groups[sample.size, sample.node].append(sample.seconds)
        durations += [
            {"action_type": name, "size": size, "node": node, "seconds": seconds}
            for (size, node), seconds in groups.items()
        ]
    return {"durations": durations}


def import_from(assembly: Assembly, operator: Operator, document: Document) -> None:
    """Keep the durations of a document; raises InvalidInput with every mistake.

    They replace all that were imported before for the action types in it.
    """
    samples = _read(document)
    number = sum(map(len, samples.values()))
    what = f"{count(number, 'duration')} of {count(len(samples), 'action type')}"
    source = f"{what} from {document.source}: {', '.join(samples)}"
    assembly.store.import_durations(samples, history=operator.entry("import", source))
    operator.say(f"Imported {what}. They count less the more is measured here.")


def _read(document: Document) -> dict[str, list[Sample]]:
    mistakes = checking.compiled(SCHEMA)(document.value)
    found: dict[str, list[Sample]] = {}
    for i, group in enumerate([] if mistakes else document.value["durations"]):
        samples = found.setdefault(group["action_type"], [])
        kind = group.get("size"), group.get("node")
        samples += [Sample(float(seconds), *kind) for seconds in group["seconds"]]
        if len(samples) > MOST >= len(samples) - len(group["seconds"]):
            text = f"more than {MOST} durations of {group['action_type']}: so many are kept"
            mistakes.append(Mistake(text, ("durations", i, "seconds")))
    if mistakes:
        raise InvalidInput(mistakes).located(document.locate)
    return found
