# SPDX-License-Identifier: Apache-2.0
"""The contract of stores, as tests: classes for the modules ``test_stores.py``."""

from __future__ import annotations

from store_checks.answer_checks import AnswerChecks
from store_checks.approval_checks import ApprovalChecks
from store_checks.attempt_checks import AllAttemptsChecks, AttemptChecks
from store_checks.claim_checks import ClaimChecks
from store_checks.claimant_checks import ClaimantChecks
from store_checks.commit_checks import CommitChecks
from store_checks.commit_refusal_checks import CommitRefusalChecks
from store_checks.duration_checks import DurationChecks, NodeDurationChecks
from store_checks.event_checks import EventChecks
from store_checks.event_writing_checks import EventWritingChecks
from store_checks.figures_checks import FiguresChecks
from store_checks.find_checks import FindChecks
from store_checks.history_checks import HistoryChecks
from store_checks.list_checks import ListChecks
from store_checks.load_checks import LoadChecks
from store_checks.move_checks import MoveChecks
from store_checks.page_checks import PageChecks
from store_checks.request_checks import RequestChecks
from store_checks.reservation_checks import ReservationChecks
from store_checks.resume_checks import ResumeChecks
from store_checks.retention_checks import RetentionChecks
from store_checks.revert_checks import RevertChecks
from store_checks.save_checks import SaveChecks
from store_checks.send_request_checks import SendRequestChecks
from store_checks.service_checks import ServiceChecks
from store_checks.settle_checks import SettleChecks
from store_checks.start_time_checks import StartTimeChecks
from store_checks.take_over_checks import TakeOverChecks
from store_checks.worker_job_checks import WorkerJobChecks


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


class HistoryStoreContract(AnswerChecks, HistoryChecks):
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
