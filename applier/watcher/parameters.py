# SPDX-License-Identifier: Apache-2.0
"""Checks the parameters of Watcher's actions by their schema, which itself is checked once."""

from __future__ import annotations

from typing import Any

import jsonschema
from watcher.applier.actions.base import BaseAction

#: A validator by class of actions.
_validators: dict[type, Any] = {}


def check(work: Any) -> None:
    """Do what ``validate_parameters`` of Watcher's actions does; raises ValidationError.

    That checks the schema for each action, which takes longer than all else of a no-op. A class
    with a method of its own is left to that.
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
