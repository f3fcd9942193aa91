# SPDX-License-Identifier: Apache-2.0
"""Checks of refusals: by the type of the error and its attributes, never by its wording."""

# Tests are assertions.

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def refused(error: type[Exception], **attributes: object) -> Iterator[None]:
    """Check that the block raises an error with these attributes.

    >>> from applier.errors import ActionNotFound
    >>> with refused(ActionNotFound, reference="none"):
    ...     raise ActionNotFound("plan", "none")
    """
    with pytest.raises(error) as raised:
        yield
    assert {name: getattr(raised.value, name) for name in attributes} == attributes
