# SPDX-License-Identifier: Apache-2.0
"""A permit is used or withdrawn, and never both, whoever is first and however late others are."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from applier.errors import ActionFailed
from applier.machines import attempt_jobs
from applier.machines.attempt_jobs import AttemptJobs, Permit
from applier.machines.job_names import AttemptName
from applier.machines.local_machine import Local
from applier.machines.open_machines import OpenMachines

ATTEMPT = AttemptName(uuid.uuid4().hex, "a", 1)


def given(place) -> Permit:
    made = Permit(place, ATTEMPT)
    made.write()
    return made


def other(place) -> Permit:
    """That of an applier that takes the plan over."""
    return Permit(place, ATTEMPT)


def test_an_attempt_that_has_begun_is_known_as_such(tmp_path):
    mine = given(tmp_path)
    mine.use()
    mine.use()
    assert not other(tmp_path).withdraw()


def test_one_that_has_not_begun_never_will(tmp_path):
    mine = given(tmp_path)
    assert [other(tmp_path).withdraw(), other(tmp_path).withdraw()] == [True, True]
    with pytest.raises(ActionFailed, match="another applier has taken the plan over"):
        mine.use()
    other(tmp_path).remove()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ActionFailed, match="another applier has taken the plan over"):
        mine.use()


def test_a_folder_that_was_moved_away_is_no_withdrawal(tmp_path):
    place = tmp_path / "jobs"
    mine = given(place)
    place.rename(tmp_path / "gone")
    with pytest.raises(ActionFailed, match=r"jobs is missing; put it back"):
        mine.use()
    (tmp_path / "gone").rename(place)
    mine.use()


def test_nothing_is_known_of_an_attempt_without_a_permit(tmp_path):
    other(tmp_path).use()
    assert not other(tmp_path).withdraw()
    assert list(tmp_path.iterdir()) == []


def test_a_restart_of_the_machine_ends_what_is_known(tmp_path, monkeypatch):
    given(tmp_path)
    monkeypatch.setattr(attempt_jobs, "boot_id", lambda: "another")
    assert not other(tmp_path).withdraw()


def test_a_late_applier_that_gives_it_again_changes_nothing(tmp_path):
    """It was frozen before it gave the permit; what it wants to record then is refused."""
    mine = given(tmp_path)
    mine.use()
    given(tmp_path)
    assert not other(tmp_path).withdraw()


def test_of_many_one_decides(tmp_path):
    """Half of them begin the attempt, half of them withdraw it, all at once, again and again."""
    for turn in range(100):
        name = AttemptName("p", "a", turn)
        start = threading.Barrier(6)
        mine = Permit(tmp_path, name)
        mine.write()

        def use(mine: Permit = mine, start: threading.Barrier = start) -> str:
            start.wait()
            try:
                mine.use()
            except ActionFailed:
                return "refused"
            return "begun"

        def withdraw(
            its: Permit = Permit(tmp_path, name),  # noqa: B008 - a permit for each turn
            start: threading.Barrier = start,
        ) -> str:
            start.wait()
            return "never" if its.withdraw() else "begun"

        with ThreadPoolExecutor(6) as pool:
            told = {future.result() for future in [pool.submit(f) for f in [use, withdraw] * 3]}
        assert told in ({"begun"}, {"refused", "never"})


def test_where_no_folder_can_be_made_it_begins_and_says_so(tmp_path, caplog):
    (tmp_path / "file").touch()
    mine = given(tmp_path / "file" / "jobs")
    mine.use()
    assert "cannot be made: Not a directory" in caplog.text
    assert not other(tmp_path / "file" / "jobs").withdraw()


@pytest.mark.parametrize("change", ["run", "write", "remove"])
def test_whatever_changes_this_machine_uses_it(tmp_path, change):
    mine, place = given(tmp_path / "jobs"), tmp_path / "jobs"
    machine = Local(threading.Event(), place, AttemptJobs(ATTEMPT, threading.Event(), mine))
    does = {
        "run": lambda: machine.run(["touch", str(tmp_path / "made")], output=lambda _: None),
        "write": lambda: machine.write(str(tmp_path / "made"), b"", 0o600),
        "remove": lambda: machine.remove(str(tmp_path / "there")),
    }
    (tmp_path / "there").touch()
    assert machine.read(str(tmp_path / "there")) is not None
    assert other(place).withdraw(), "to read changes nothing"
    with pytest.raises(ActionFailed, match="another applier has taken the plan over"):
        does[change]()
    assert (tmp_path / "there").exists()
    assert not (tmp_path / "made").exists()
    assert [path.name for path in place.iterdir()] == [path.name for path in place.glob("permit.*")]


def test_without_one_where_it_would_have_to_be_an_attempt_has_not_begun_and_never_will(tmp_path):
    assert other(tmp_path).withdraw(is_here=True)
    with pytest.raises(ActionFailed, match="another applier has taken the plan over"):
        given(tmp_path).use()


def test_one_that_was_used_is_known_where_it_would_have_to_be(tmp_path):
    given(tmp_path).use()
    assert not other(tmp_path).withdraw(is_here=True)


def test_permits_have_the_same_origin_in_one_folder_until_a_restart(tmp_path, monkeypatch):
    mine, its = tmp_path / "mine", tmp_path / "its"
    assert attempt_jobs.origin(mine) == attempt_jobs.origin(mine)
    assert attempt_jobs.origin(mine) != attempt_jobs.origin(its)
    before = attempt_jobs.origin(mine)
    monkeypatch.setattr(attempt_jobs, "boot_id", lambda: "another")
    assert attempt_jobs.origin(mine) != before


@pytest.mark.parametrize("place", [None, "file/jobs"])
def test_where_there_can_be_no_permits_no_two_origins_are_the_same(tmp_path, place):
    (tmp_path / "file").touch()
    folder = None if place is None else tmp_path / place
    assert attempt_jobs.origin(folder) != attempt_jobs.origin(folder)


def test_the_start_of_the_machine_is_known_before_files_run_short(tmp_path, monkeypatch):
    attempt_jobs.boot_id.cache_clear()
    machines = OpenMachines(place=tmp_path)
    monkeypatch.setattr(attempt_jobs, "_BOOT_ID", tmp_path / "no more files")
    assert len(machines.origin) == 6
    machines.of_attempt("plan", "action", 1)
