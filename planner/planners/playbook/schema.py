# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of ``kind: playbook``."""

from __future__ import annotations

from typing import Any

from planner.planners.solution_schema import COMMON
from planner.schemas import ranges

_NAMES: dict[str, Any] = {
    **ranges.ARGUMENT,
    "type": ["string", "array"],
    "items": ranges.ARGUMENT,
}
_TEXTS = ranges.list_of(ranges.TEXT)
_PLAY: dict[str, Any] = ranges.mapping(
    "hosts",
    name={**ranges.TEXT, "description": "Of its hosts where it has none."},
    hosts=ranges.list_of(ranges.RESOURCE, description="In the order in which Ansible takes them."),
    is_shuffled={"type": "boolean", "description": "Whether it asks for any order."},
    serial=ranges.list_of({**ranges.TEXT, "type": ["integer", "string"]}),
    strategy=ranges.TEXT,
    max_fail_percentage={"type": "number", "minimum": 0, "maximum": ranges.MOST},
    any_errors_fatal={"type": "boolean"},
    vars_prompt={**_TEXTS, "description": "Variables that it asks a user for."},
    tasks={**_TEXTS, "description": "The names of those that the tags choose."},
    handlers=_TEXTS,
    words={**_TEXTS, "description": "Those of its tasks that say what is lost."},
    makes={**_TEXTS, "description": "The variables that its tasks set."},
    lacks_facts={
        "type": "boolean",
        "description": "Whether it uses facts that only earlier plays gather.",
    },
)
SCHEMA: dict[str, Any] = ranges.document(
    "playbook",
    "A playbook of Ansible, run play by play on the hosts of an inventory.",
    *("kind", "playbook", "inventory"),
    **COMMON,
    playbook={**ranges.ARGUMENT, "description": "A file, relative to this one."},
    inventory={
        **_NAMES,
        "minItems": 1,
        "description": "One or more inventories, relative to this document.",
    },
    limit={**_NAMES, "description": "A pattern: only these hosts, as --limit."},
    tags={**_NAMES, "description": "Only tasks with one of these tags, as --tags."},
    skip_tags={**_NAMES, "description": "No tasks with one of these, as --skip-tags."},
    variables={
        "type": "object",
        **ranges.BY_NAME,
        "description": "As --extra-vars: over all others.",
    },
    become={
        "type": "boolean",
        "description": "Run tasks as another user, root by default, where the playbook does "
        "not say, as --become.",
    },
    forks={
        **ranges.COUNT_OF_ONE_OR_MORE,
        "description": "On how many hosts at once; as Ansible is configured where left out.",
    },
    vault_password={**ranges.ARGUMENT, "description": "A reference to a secret."},
    plays=ranges.list_of(
        _PLAY, minItems=1, description="What the playbook does on the hosts; read from it."
    ),
)
