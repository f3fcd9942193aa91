# SPDX-License-Identifier: Apache-2.0
"""The contract of stores, as tests that any project can run on its own store.

In a test module, with pytest and hypothesis::

    from applier.testing.store_suite import StoreContract

    @pytest.fixture
    def store():
        with closing(MyStore()) as store:
            yield store

    class TestMyStore(StoreContract):
        pass

The store of a test is empty when the test begins, and may be used from several threads.

There is a contract for each part of :class:`applier.store.Store`. :class:`RunStoreContract` calls
the methods of a RunStore, and also ``save_plan`` and ``add_request``, which put plans and requests
into the store. A store that gets them in another way adds both methods in a subclass for the tests.
:class:`ServiceStoreContract` calls only the methods of a ServiceStore. The others call methods
of all parts, because operators see and change plans that runs have written.
"""

from __future__ import annotations

from applier.testing.store_checks.approval_checks import ApprovalChecks
from applier.testing.store_checks.attempt_checks import AllAttemptsChecks, AttemptChecks
from applier.testing.store_checks.claim_checks import ClaimChecks
from applier.testing.store_checks.claimant_checks import ClaimantChecks
from applier.testing.store_checks.commit_checks import CommitChecks
from applier.testing.store_checks.commit_refusal_checks import CommitRefusalChecks
from applier.testing.store_checks.duration_checks import DurationChecks, NodeDurationChecks
from applier.testing.store_checks.event_checks import EventChecks
from applier.testing.store_checks.event_writing_checks import EventWritingChecks
from applier.testing.store_checks.figures_checks import FiguresChecks
from applier.testing.store_checks.find_checks import FindChecks
from applier.testing.store_checks.history_checks import HistoryChecks
from applier.testing.store_checks.list_checks import ListChecks
from applier.testing.store_checks.load_checks import LoadChecks
from applier.testing.store_checks.move_checks import MoveChecks
from applier.testing.store_checks.page_checks import PageChecks
from applier.testing.store_checks.request_checks import RequestChecks
from applier.testing.store_checks.reservation_checks import ReservationChecks
from applier.testing.store_checks.resume_checks import ResumeChecks
from applier.testing.store_checks.retention_checks import RetentionChecks
from applier.testing.store_checks.revert_checks import RevertChecks
from applier.testing.store_checks.save_checks import SaveChecks
from applier.testing.store_checks.send_request_checks import SendRequestChecks
from applier.testing.store_checks.service_checks import ServiceChecks
from applier.testing.store_checks.settle_checks import SettleChecks
from applier.testing.store_checks.start_time_checks import StartTimeChecks
from applier.testing.store_checks.take_over_checks import TakeOverChecks
from applier.testing.store_checks.worker_job_checks import WorkerJobChecks


class RunStoreContract(
    LoadChecks,
    ClaimChecks,
    CommitChecks,
    CommitRefusalChecks,
    RevertChecks,
    AttemptChecks,
    DurationChecks,
    RequestChecks,
    ReservationChecks,
):
    """Tests of the RunStore of the fixture ``store``."""


class PlanStoreContract(SaveChecks, FindChecks, ListChecks, AllAttemptsChecks):
    """Tests of the methods of PlanStore; the fixture ``store`` returns a whole Store."""


class PageStoreContract(PageChecks):
    """Tests of the methods of PageStore; the fixture ``store`` returns a whole Store."""


class OperatorStoreContract(
    MoveChecks, ClaimantChecks, ResumeChecks, TakeOverChecks, SettleChecks, SendRequestChecks
):
    """Tests of the methods of OperatorStore; the fixture ``store`` returns a whole Store."""


class HistoryStoreContract(HistoryChecks):
    """Tests of the methods of HistoryStore; the fixture ``store`` returns a whole Store."""


class RetentionStoreContract(RetentionChecks):
    """Tests of the methods of RetentionStore; the fixture ``store`` returns a whole Store."""


class ServiceStoreContract(ServiceChecks):
    """Tests of the ServiceStore of the fixture ``store``."""


class FiguresStoreContract(FiguresChecks):
    """Tests of the methods of FiguresStore; the fixture ``store`` returns a whole Store."""


class EventStoreContract(EventWritingChecks, EventChecks):
    """Tests of the methods of EventStore; the fixture ``store`` returns a whole Store."""


class DurationStoreContract(NodeDurationChecks):
    """Tests of the methods of DurationStore; the fixture ``store`` returns a whole Store."""


class StartTimeStoreContract(StartTimeChecks):
    """Tests of the methods of StartTimeStore; the fixture ``store`` returns a whole Store."""


class ApprovalStoreContract(ApprovalChecks):
    """Tests of the methods of ApprovalStore; the fixture ``store`` returns a whole Store."""


class WorkerJobStoreContract(WorkerJobChecks):
    """Tests of the methods of WorkerJobStore; the fixture ``store`` returns a whole Store."""


class StoreContract(
    RunStoreContract,
    PlanStoreContract,
    PageStoreContract,
    OperatorStoreContract,
    HistoryStoreContract,
    RetentionStoreContract,
    ServiceStoreContract,
    FiguresStoreContract,
    EventStoreContract,
    DurationStoreContract,
    ApprovalStoreContract,
    StartTimeStoreContract,
    WorkerJobStoreContract,
):
    """Tests of the Store of the fixture ``store``: all of the above."""
