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


class StoreContract(
    RunStoreContract,
    AllAttemptsChecks,
    AnswerChecks,
    ApprovalChecks,
    ClaimantChecks,
    EventChecks,
    EventWritingChecks,
    FiguresChecks,
    FindChecks,
    HistoryChecks,
    ListChecks,
    MoveChecks,
    NodeDurationChecks,
    PageChecks,
    ResumeChecks,
    RetentionChecks,
    SaveChecks,
    SendRequestChecks,
    ServiceChecks,
    SettleChecks,
    StartTimeChecks,
    TakeOverChecks,
    WorkerJobChecks,
):
    """Tests of the record, of which the fixture ``store`` returns an empty one."""
