# SPDX-License-Identifier: Apache-2.0
"""The contract of clouds, as tests that any project can run on its own cloud.

In a test module, with pytest::

    from applier.testing.cloud_suite import CloudContract, CloudSample

    @pytest.fixture
    def sample():
        cloud = MyCloud(url=...)
        yield CloudSample(cloud=cloud, instance=..., host="compute-1", ...)
        cloud.close()

    class TestMyCloud(CloudContract):
        LEFT_OUT = frozenset({"suspend"})

Each test gets a new sample and changes it. ``LEFT_OUT`` names the operations that the cloud does
not offer; they have to raise ActionFailed with a sentence. All names are in
:data:`applier.testing.cloud_checks.offered.NAMES`.
"""

from __future__ import annotations

from applier.testing.cloud_checks.cloud_works import CloudSample
from applier.testing.cloud_checks.concurrency_checks import CloudConcurrencyChecks
from applier.testing.cloud_checks.looking_checks import LookingChecks
from applier.testing.cloud_checks.operation_checks import OperationChecks
from applier.testing.cloud_checks.refused_checks import RefusedChecks

__all__ = ["CloudContract", "CloudSample"]


class CloudContract(LookingChecks, OperationChecks, RefusedChecks, CloudConcurrencyChecks):
    """Tests of the cloud of the fixture ``sample``."""
