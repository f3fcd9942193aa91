# SPDX-License-Identifier: Apache-2.0
"""Nop: nothing, and what it is asked to pretend."""

from __future__ import annotations

import pytest

from applier.actions.nop import Nop
from applier.errors import ActionFailed, AlreadyDone
from planner.states import Outcome


def test_it_counts_as_changed_and_prints_its_message(context, printed, stop):
    assert Nop({"message": "half way"}, context).execute(stop) is Outcome.CHANGED
    assert printed == ["half way\n"]


@pytest.mark.parametrize("parameters", [{}, {"message": None}])
def test_without_a_message_it_prints_nothing(context, printed, stop, parameters):
    work = Nop(parameters, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert printed == []


def test_it_fails_its_precheck_if_asked_to(context):
    with pytest.raises(ActionFailed, match="fail_pre_condition"):
        Nop({"fail_pre_condition": True}, context).precheck()


def test_it_is_already_done_if_asked_to(context):
    with pytest.raises(AlreadyDone, match="skip_pre_condition"):
        Nop({"skip_pre_condition": True}, context).precheck()


def test_it_fails_before_its_work_if_asked_to(context, printed, stop):
    with pytest.raises(ActionFailed, match="fail_execute"):
        Nop({"fail_execute": True, "message": "hello"}, context).execute(stop)
    assert printed == []


def test_it_fails_after_its_work_if_asked_to(context, printed, stop):
    with pytest.raises(ActionFailed, match="fail_post_condition"):
        Nop({"fail_post_condition": True, "message": "hello"}, context).execute(stop)
    assert printed == ["hello\n"]


def test_its_words_are_its_message():
    assert Nop.describe({"message": "half\nway"}) == "nop: half way"
    assert Nop.describe({}) == "nop"
    assert Nop.touches({"resource_id": "6a1f"}) == ()
