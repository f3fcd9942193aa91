# SPDX-License-Identifier: Apache-2.0
"""Writes a plan into a response, with its ETag; the values of secret parameters are left out."""

from __future__ import annotations

from collections.abc import Iterator

import falcon

from applier.api.parts import Parts
from applier.api.v2 import etags
from applier.operations import hidden_values
from planner import json_text
from planner.model import ActionPlan

_text = json_text.compact()

#: A plan with more actions than this is streamed in pieces of this many actions.
WHOLE = 100


def show(parts: Parts, response: falcon.Response, plan: ActionPlan) -> None:
    """Write a plan with its ETag into a response.

    A plan with more than WHOLE actions is streamed.
    """
    response.set_header("ETag", etags.current(parts.assembly.store, plan))
    response.content_type = falcon.MEDIA_JSON
    pieces = _pieces(parts, plan)
    if len(plan.actions) > WHOLE:
        response.stream = pieces
    else:
        response.data = b"".join(pieces)


def show_new(
    parts: Parts, request: falcon.Request, response: falcon.Response, plan: ActionPlan
) -> None:
    """Answer a request that has stored a plan (201), with its URL in the header Location."""
    response.status = falcon.HTTP_201
    response.set_header("Location", f"{request.prefix}/v2/plans/{plan.uuid}")
    show(parts, response, plan)


def _pieces(parts: Parts, plan: ActionPlan) -> Iterator[bytes]:
    yield f'{_text(plan.head())[:-1]},"actions":['.encode()
    types = parts.assembly.action_types
    for first in range(0, len(plan.actions), WHOLE):
        some = plan.actions[first : first + WHOLE]
        shown = [hidden_values.action_without(action, types).to_dict() for action in some]
        yield (b"," if first else b"") + _text(shown)[1:-1].encode()
    yield b"]}"
