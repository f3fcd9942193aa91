# SPDX-License-Identifier: Apache-2.0
"""Accounts of workers on real servers: they do their jobs, and are refused everything else."""

# Names of tables and accounts are made here.

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NamedTuple
from uuid import uuid4

import kombu
import pytest
from command_line import ROOT
from sample_plans import new_plan
from scratch_broker import broker_for_tests
from scratch_database import connected, database_for_tests
from store_checks.running_plans import NOW, claimed, starts
from worker_processes import fleet, until

from applier.contracts import JobOffer
from applier.errors import StoreError
from applier.storage.connection import parse
from applier.storage.schema import TABLES
from applier.storage.schema_version import upgrade
from applier.storage.sql_store import SqlStore
from applier.store.worker_jobs import AttemptKey, HeldJob, Worker, WorkerJobState
from applier.workers.celery_app import CeleryDelivery, celery_app

pytestmark = pytest.mark.server
PASSWORD = "made-up-for-a-test"  # noqa: S105
HOSTS: dict[str, Any] = {"host": "h", "pid": 1, "user": "u", "version": "1", "places": 1}


class Accounts(NamedTuple):
    """The URL of a record on a server, and an account that serves the queue site-b of it."""

    owners_url: str
    account: str
    url: str


class Setting(NamedTuple):
    """A record with a plan whose two jobs are of two queues, and an account of one."""

    owner: SqlStore
    owners_url: str
    account: str
    url: str
    plan: str
    own: AttemptKey
    others: AttemptKey


@pytest.fixture(scope="module", params=["postgresql", "mysql"])
def accounts(request: pytest.FixtureRequest) -> Iterator[Accounts]:
    """Yield a record, prepared by the file in etc/ as its comment says."""
    kind, account = request.param, f"worker_{uuid4().hex[:12]}"
    prepare = {"postgresql": on_postgresql, "mysql": on_mariadb}[kind]
    with database_for_tests(kind) as url:
        upgrade(url)
        drop, workers_url = prepare(url, account)
        try:
            yield Accounts(url, account, workers_url)
        finally:
            drop()


@pytest.fixture
def setting(accounts: Accounts) -> Iterator[Setting]:
    """Yield the record with a new plan, which is removed again with its jobs."""
    with closing(SqlStore(accounts.owners_url)) as owner:
        plan = new_plan("a", "b")
        claim, keys, reports = claimed(owner, plan), [], []
        for action, queue in zip(plan.actions, ("site-b", "site-c"), strict=True):
            offer = JobOffer(1, queue, "nop", {"format": 10**6, "release": "99", "for": queue})
            reports.append(starts(action)._replace(job=offer))
            keys.append(AttemptKey(plan.uuid, action.uuid, 1))
        owner.commit(plan.uuid, claim, reports, now=NOW)
        yield Setting(owner, *accounts, plan.uuid, *keys)
        run(accounts.owners_url, "DELETE FROM actionplan_worker_job")
        run(accounts.owners_url, "DELETE FROM actionplan_worker")


def statements(file: str, **replaced: str) -> list[str]:
    """Return the statements of a file in etc/ for MariaDB."""
    text = (ROOT / "etc" / file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    text = "\n".join(lines)
    for old, new in replaced.items():
        text = text.replace(old.replace("__", "."), new)
    return [part for part in text.split(";") if part.strip()]


def on_postgresql(url: str, account: str) -> tuple[Callable[[], None], str]:
    """Prepare a record in PostgreSQL; return what drops the account, and its URL."""
    text = (ROOT / "etc" / "worker-accounts.postgresql.sql").read_text(encoding="utf-8")
    run(url, text, text)  # it may be repeated
    run(
        url,
        f"CREATE ROLE {account} LOGIN PASSWORD '{PASSWORD}' IN ROLE actionplan_worker",
        f"INSERT INTO actionplan_rights.served_queue VALUES ('{account}', 'site-b')",
    )
    own = parse(url)._replace(user=account, password=PASSWORD)
    return (
        lambda: run(url, f"DROP ROLE {account}"),
        own.with_password(),
    )


def on_mariadb(url: str, account: str) -> tuple[Callable[[], None], str]:
    """Prepare a record in MariaDB; return what drops the account and its database, and its URL."""
    database = parse(url).database
    own = f"{database}_w"
    replaced = {"actionplan_workers": own, "actionplan__actionplan": f"{database}.actionplan"}
    run(
        url,
        *statements("worker-accounts.mariadb.sql", **replaced),
        f"CREATE USER {account}@'%' IDENTIFIED BY '{PASSWORD}'",
        f"GRANT actionplan_worker TO {account}@'%'",
        f"SET DEFAULT ROLE actionplan_worker FOR {account}@'%'",
        f"INSERT INTO {own}.served_queue VALUES ('{account}', 'site-b')",
    )
    its = parse(url)._replace(user=account, password=PASSWORD, database=own)
    views = ("actionplan_worker_job", "actionplan_worker", "actionplan_alembic_version")
    drops = [f"REVOKE ALL ON {own}.{view} FROM actionplan_worker" for view in views]
    drops += [f"DROP USER {account}@'%'", f"DROP DATABASE {own}"]
    return lambda: run(url, *drops), its.with_password()


def run(url: str, *given: str) -> None:
    """Run statements, each in a transaction of its own."""
    with connected(url) as connection, closing(connection.cursor()) as cursor:
        for statement in given:
            cursor.execute(statement)


def refusals(url: str, *given: str) -> list[str]:
    """Run statements that must all be refused; return the messages of the server."""
    found = []
    for statement in given:
        with pytest.raises(Exception, match=r"(?s).*") as refused:
            run(url, statement)
        found.append(str(refused.value))
    return found


def test_the_account_of_a_worker_takes_renews_and_ends_its_jobs(setting):
    token, worker = str(uuid4()), Worker("w1", queues=["site-b"], types=["nop"], **HOSTS)
    with closing(SqlStore(setting.url)) as store:
        assert not store.report_worker(worker)
        taken = store.take_job(setting.own, worker="w1", token=token, lease_s=60)
        assert taken is not None
        assert taken.payload["for"] == "site-b"
        store.renew_jobs([HeldJob(setting.own, token)], 60)
        assert store.held_jobs("w1") == [HeldJob(setting.own, token)]
        assert setting.owner.drain_worker("w1")
        assert store.report_worker(worker._replace(running=1))
        assert store.end_job(setting.own, token, {"state": "SUCCEEDED"})
        store.remove_worker("w1")
    states = {job.queue: job.state for job in setting.owner.jobs_of(setting.plan)}
    assert states == {"site-b": "ended", "site-c": "todo"}
    assert setting.owner.workers() == []


def test_the_program_needs_no_more_than_its_account_may(setting, tmp_path):
    """It starts, finds its job by a message, and writes how it ended."""
    queue = f"site-{uuid4().hex[:12]}"
    rights = "actionplan_rights"
    if "postgresql" not in setting.url:
        rights = parse(setting.url).database
    own = f"'{setting.account}', '{queue}'"
    run(setting.owners_url, f"INSERT INTO {rights}.served_queue VALUES ({own})")
    run(
        setting.owners_url,
        f"UPDATE actionplan_worker_job SET queue = '{queue}' WHERE queue = 'site-b'",
    )
    broker = broker_for_tests()
    with fleet(tmp_path, setting.owners_url, broker) as made:
        text = made.configuration.read_text(encoding="utf-8").replace(made.site, queue)
        text = text.replace(setting.owners_url, setting.url.replace("%", "%%"))
        made.configuration.write_text(text, encoding="utf-8")
        made.workers(1)
        delivery = CeleryDelivery(celery_app(broker, [queue]))
        delivery.send(queue, setting.own)
        ended = [WorkerJobState.ENDED]
        until(lambda: setting.owner.jobs_of(setting.plan, ended), made.told)
        delivery.close()
        [job] = setting.owner.jobs_of(setting.plan, ended)
    assert job.key == setting.own
    with kombu.Connection(broker, connect_timeout=5) as connection:
        connection.default_channel.queue_delete(f"actionplan.{queue}")


def test_the_account_of_a_worker_finds_no_job_of_another_queue(setting):
    for name, queue in (("w1", "site-b"), ("w2", "site-c")):
        setting.owner.report_worker(Worker(name, queues=[queue], types=[], **HOSTS))
    with closing(SqlStore(setting.url)) as store:
        assert [job.key for job in store.jobs_of(setting.plan)] == [setting.own]
        assert store.take_job(setting.others, worker="w1", token=str(uuid4()), lease_s=60) is None
        assert [worker.name for worker in store.workers()] == ["w1"]
        store.remove_worker("w2")
        with pytest.raises(StoreError):
            store.report_worker(Worker("w3", queues=["site-b", "site-c"], types=[], **HOSTS))
    assert [worker.name for worker in setting.owner.workers()] == ["w1", "w2"]


def test_what_was_fenced_no_account_of_a_worker_changes(setting):
    token = str(uuid4())
    with closing(SqlStore(setting.url)) as store:
        assert store.take_job(setting.own, worker="w1", token=token, lease_s=-1)
        setting.owner.fence_jobs(setting.plan)
        assert not store.end_job(setting.own, token, {})
        for sql in ("SET state = 'doing'", "SET state = 'ended'"):
            run(setting.url, f"UPDATE actionplan_worker_job {sql}")
    assert {job.state for job in setting.owner.jobs_of(setting.plan)} == {"lost", "todo"}


def test_the_account_of_a_worker_is_refused_all_other_tables(setting):
    database = parse(setting.owners_url).database
    where = "public" if "postgresql" in setting.url else database
    others = {*TABLES} - {"actionplan_worker_job", "actionplan_worker"}
    assert "actionplan_plan" in others
    told = refusals(setting.url, *(f"SELECT * FROM {where}.{name}" for name in sorted(others)))
    assert all("denied" in text for text in told), told


def test_the_account_of_a_worker_changes_nothing_but_what_its_work_needs(setting):
    rights = (
        "actionplan_rights.served_queue"
        if "postgresql" in setting.url
        else f"{parse(setting.url).database}.served_queue"
    )
    told = refusals(
        setting.url,
        "DELETE FROM actionplan_worker_job",
        "UPDATE actionplan_worker_job SET payload = '{}'",
        "UPDATE actionplan_worker_job SET queue = 'site-b'",
        "UPDATE actionplan_worker_job SET stop = 'abort'",
        "UPDATE actionplan_worker SET draining = 1",
        f"SELECT * FROM {rights}",
        f"INSERT INTO {rights} VALUES ('{setting.account}', 'site-c')",
        "CREATE TABLE mine (a integer)",
    )
    assert all("denied" in text for text in told), told


def test_no_account_of_a_worker_is_taken_for_another(setting):
    if "postgresql" not in setting.url:
        pytest.skip("MariaDB has no session authorization")
    own = "SELECT 1 / count(*) FROM actionplan_worker_job WHERE queue = 'site-c'"
    told = refusals(
        setting.url,
        "SET SESSION AUTHORIZATION postgres",
        "SET ROLE postgres",
        f"SET ROLE actionplan_worker; {own}",
        f"SET row_security = off; {own}",
        # A function of its own would see rows that the rules hide, if it were asked before them.
        "CREATE FUNCTION pg_temp.tell(t text) RETURNS bool COST 1e-9 LANGUAGE plpgsql AS "
        "$$BEGIN IF t = 'site-c' THEN RAISE 'told'; END IF; RETURN true; END$$; "
        f"{own} AND pg_temp.tell(queue)",
    )
    assert not any("told" in text for text in told[2:]), told


def test_accounts_that_are_no_workers_see_all_jobs(setting):
    """The applier need not own the tables."""
    assert {job.queue for job in setting.owner.jobs_of(setting.plan)} == {"site-b", "site-c"}
    if "postgresql" not in setting.url:
        return
    applier = f"applier_{uuid4().hex[:12]}"
    url = parse(setting.owners_url)._replace(user=applier, password=PASSWORD)
    try:
        run(
            setting.owners_url,
            f"CREATE ROLE {applier} LOGIN PASSWORD '{PASSWORD}'",
            f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {applier}",
        )
        with closing(SqlStore(url.with_password())) as store:
            found = {job.queue for job in store.jobs_of(setting.plan)}
            assert found == {"site-b", "site-c"}
    finally:
        run(setting.owners_url, f"DROP OWNED BY {applier}", f"DROP ROLE {applier}")
