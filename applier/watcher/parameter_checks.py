# SPDX-License-Identifier: Apache-2.0
"""Validates the parameters of Watcher's actions; checks each schema only once per class."""

from __future__ import annotations

from typing import Any

import jsonschema
from watcher.applier.actions.base import BaseAction

#: The validators of the schemas that were checked, by class of actions.
_validators: dict[type, Any] = {}


def check(work: Any) -> None:
    """Validate the input parameters of Watcher's object of an action; raises ValidationError.

    Watcher's own ``validate_parameters`` also checks the schema for each action, which takes longer
    than the rest of a no-op. It is called only if the class of the action overrides it.
    """
    kind = type(work)
    if kind.validate_parameters is not BaseAction.validate_parameters:
        work.validate_parameters()
        return
    schema = work.schema
    validator = _validators.get(kind)
    if validator is None or validator.schema != schema:
        found = jsonschema.validators.validator_for(schema)
        found.check_schema(schema)
        validator = _validators[kind] = found(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(work.input_parameters))
    if error is not None:
        raise error
