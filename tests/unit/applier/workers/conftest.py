# SPDX-License-Identifier: Apache-2.0
"""A record, and a job on it that an applier follows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from followed_job import PAYLOAD, Job
from temporary_store import TemporaryStore


@pytest.fixture
def store() -> Iterator[TemporaryStore]:
    with closing(TemporaryStore()) as store:
        yield store


@pytest.fixture
def job(store) -> Job:
    return Job(store, PAYLOAD)
