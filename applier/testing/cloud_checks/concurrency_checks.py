# SPDX-License-Identifier: Apache-2.0
"""Checks of a cloud that many threads use at once."""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import pytest

from applier.contracts import Print, StopSignal
from applier.testing.cloud_checks.cloud_works import CloudSample, TriedOperation, works
from applier.testing.cloud_checks.offered import Offered, require_refusal

THREADS = 8


class CloudConcurrencyChecks(Offered):
    """Checks of operations and getters that threads call at the same time."""

    def test_any_number_of_threads_may_look(self, sample: CloudSample) -> None:
        """The getters return the same values to all threads that call them at the same time."""
        cloud, seen = sample.cloud, list[object]()

        def look(_stop: StopSignal, _output: Print) -> None:
            seen.append((cloud.instance(sample.instance), cloud.service(sample.host)))

        ends = self.ends_of([TriedOperation(look, lambda: True)] * THREADS)
        assert ends == [None] * THREADS
        assert len(seen) == THREADS
        assert all(answer == seen[0] for answer in seen)

    @pytest.mark.parametrize("name", ["live_migrate", "stop", "create", "delete", "service"])
    def test_what_is_under_way_is_not_begun_again(self, sample: CloudSample, name: str) -> None:
        """Of two callers, one does the work; the other returns as well, or gets ActionFailed."""
        self.require_offered(name)
        work = works(sample)[name]
        ends = self.ends_of([work, work])
        failures = [end for end in ends if end is not None]
        assert len(failures) < 2, f"nobody has done it: {failures}"
        for end in failures:
            require_refusal(end)
        # Several instances of one name would be refused here.
        assert work.is_done()
