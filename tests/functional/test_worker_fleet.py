# SPDX-License-Identifier: Apache-2.0
"""Actions run at ``actionplan-worker`` processes, once whatever is killed; over TLS; composed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import kombu
import pytest
import yaml
from command_line import ROOT
from scratch_broker import broker_for_tests
from scratch_database import database_for_tests, run
from worker_processes import (
    PATIENCE_S,
    SHORT_LEASE_S,
    OwnRedis,
    Processes,
    fleet,
    fleet_for_tests,
    until,
)

from applier.storage.sql_store import SqlStore
from applier.store.worker_jobs import AttemptKey
from applier.workers.celery_app import CeleryDelivery, celery_app
from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState

pytestmark = pytest.mark.server


@pytest.fixture(params=[("postgresql", "rabbitmq")], ids="-".join)
def processes(request, tmp_path):
    """A fleet on the database and the broker that a test names."""
    with fleet_for_tests(tmp_path, *request.param) as made:
        yield made


@pytest.mark.parametrize(
    "processes", [("postgresql", "rabbitmq"), ("mysql", "redis")], indirect=True, ids="-".join
)
def test_several_workers_do_each_action_of_a_plan_once(processes):
    processes.workers(2)
    processes.start("actionplan-applier")
    plan = processes.ended(processes.shells(16, 0.2))
    assert plan.state is PlanState.SUCCEEDED
    once = Counter({action.name: 1 for action in plan.actions})
    assert processes.effects() == (once, once)
    assert processes.store.jobs_of(plan.uuid) == []
    assert all(action.attempts == 1 for action in plan.actions)
    attempts = processes.store.all_attempts(plan.uuid, most=0)
    at = {one.worker for tried in attempts.values() for one in tried}
    assert at
    assert at <= {worker.name for worker in processes.store.workers()}


@pytest.mark.needs("redis-server")
def test_a_worker_the_applier_and_the_broker_are_killed_and_each_action_is_done_once(tmp_path):
    """The commands go on; whoever comes next follows them, and starts none again."""
    broker = OwnRedis(tmp_path)
    broker.start()
    try:
        with (
            database_for_tests() as record,
            fleet(tmp_path, record, broker.url, lease_s=SHORT_LEASE_S) as mortal,
        ):
            first, *_ = mortal.workers(3)
            applier = mortal.start("actionplan-applier")
            plan = mortal.shells(24, 2.0)
            until(lambda: len(mortal.effects()[0]) >= 6, mortal.told)
            mortal.kill(first)
            mortal.kill(applier)
            broker.kill()
            broker.start()
            mortal.start("actionplan-applier")
            plan = mortal.ended(plan)
            begun, ended = mortal.effects()
            once = Counter({action.name: 1 for action in plan.actions})
            assert begun == ended == once, mortal.told()
            assert plan.state is PlanState.SUCCEEDED, mortal.told()
            assert mortal.store.jobs_of(plan.uuid) == []
    finally:
        broker.kill()


def test_a_worker_that_is_told_to_end_ends_what_it_has_begun_and_takes_no_more(processes):
    first, _ = processes.workers(2)
    processes.start("actionplan-applier")
    plan = processes.shells(24, 0.5)
    until(lambda: len(processes.effects()[0]) >= 4, processes.told)
    first.send_signal(signal.SIGTERM)
    assert first.wait(timeout=PATIENCE_S) == 0, processes.told()
    plan = processes.ended(plan)
    assert plan.state is PlanState.SUCCEEDED
    assert [action.attempts for action in plan.actions] == [1] * 24
    assert len(processes.store.workers()) == 1


def test_a_secret_is_read_at_the_worker_and_is_nowhere_else(processes):
    """Not in the row of the job, not in a log, and not in the output of its action."""
    secret, own = f"tell-nobody-{uuid4().hex}", processes.folder / "own"
    processes.workers(1, SITE_PASSWORD=secret)
    processes.start("actionplan-applier")
    go, action = processes.folder / "go", processes.shell("s0", 0)
    command = f'echo "got $PW"; echo "$PW" > {own}; while [ ! -e {go} ]; do sleep 0.1; done'
    given = {"command": command, "env": {"PW": {"secret": "env SITE_PASSWORD"}}}
    plan = processes.pending([replace(action, input_parameters=given)])
    until(own.exists, processes.told)
    [payload] = run(processes.url, "SELECT payload FROM actionplan_worker_job")
    assert "env SITE_PASSWORD" in payload
    go.touch()
    plan = processes.ended(plan)
    assert plan.state is PlanState.SUCCEEDED, processes.told()
    assert own.read_text().strip() == secret
    [action] = plan.actions
    said = f"{payload}{action}{processes.store.output(plan.uuid, action.uuid)}{processes.told()}"
    assert secret not in said


# A broker over TLS, only if its certificate is of its host


PROXY = Path(__file__).with_name("tls_proxy.py")


class Certificates:
    """An authority of a test, and certificates of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.authority = self._made("authority", "-x509")

    def of(self, name: str, host: str) -> tuple[Path, Path]:
        """Make the certificate and the key of a host."""
        by = ("-CA", self.authority, "-CAkey", self._folder / "authority.key", "-x509")
        return self._made(name, *by, "-addext", f"subjectAltName={host}"), self._key(name)

    def _made(self, name: str, *options: object) -> Path:
        made = self._folder / f"{name}.pem"
        command = ["openssl", "req", *map(str, options), "-newkey", "rsa:2048", "-nodes"]
        command += ["-keyout", self._key(name), "-out", made, "-subj", f"/CN={name}"]
        subprocess.run(command, check=True, capture_output=True)
        return made

    def _key(self, name: str) -> Path:
        return self._folder / f"{name}.key"


@contextmanager
def with_tls(broker: str, certificate: tuple[Path, Path]) -> Iterator[str]:
    """Yield the address at which a broker is reached by TLS."""
    parts = urlsplit(broker)
    command = [sys.executable, PROXY, *certificate, str(parts.hostname), str(parts.port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            port = int(proxy.stdout.readline())
            user = f"{parts.username}:{parts.password}@" if parts.username else ""
            yield parts._replace(scheme="amqps", netloc=f"{user}127.0.0.1:{port}").geturl()
        finally:
            proxy.kill()


@pytest.fixture
def broker() -> str:
    """Return the URL of a broker without TLS, or skip the test."""
    return broker_for_tests()


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Return an authority that signs certificates."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    return Certificates(folder)


@pytest.mark.needs("openssl")
def test_a_plan_runs_over_a_broker_that_is_known_by_its_authority(broker, certificates, tmp_path):
    own = certificates.of("broker", "IP:127.0.0.1")
    with with_tls(broker, own) as url, fleet_for_tests(tmp_path) as processes:
        text = processes.configuration.read_text(encoding="utf-8")
        tls = f"broker = {url}\nbroker_ca_file = {certificates.authority}"
        processes.configuration.write_text(text.replace(f"broker = {broker}", tls))
        processes.workers(1)
        processes.start("actionplan-applier")
        plan = processes.ended(processes.shells(3, 0.1))
        assert plan.state is PlanState.SUCCEEDED, processes.told()
        assert "CERTIFICATE" not in processes.told()


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("scheme", ["amqps", "rediss"])
@pytest.mark.parametrize(
    ("host", "knows_authority", "why"),
    [
        ("IP:127.0.0.1", False, "certificate verify failed"),
        ("DNS:elsewhere.example", True, "not valid for '127.0.0.1'"),
    ],
)
def test_a_broker_with_another_certificate_is_not_reached(
    broker, certificates, caplog, scheme, host, knows_authority, why
):
    ca_file = str(certificates.authority) if knows_authority else None
    with with_tls(broker, certificates.of("broker", host)) as url:
        app = celery_app(url.replace("amqps", scheme).removesuffix("//"), ["q"], ca_file)
        delivery = CeleryDelivery(app)
        delivery.send("q", AttemptKey("p", "a", 1))
        until(lambda: "The broker cannot be reached" in caplog.text)
        delivery.close()
    assert why in caplog.text


# etc/compose.yaml: what its services run is started here as processes of this machine


PLACE = "/etc/watcher/watcher.conf"


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    """Return the file, with what it repeats by name in its places."""
    text = (ROOT / "etc" / "compose.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


class Local:
    """The services of the file on this machine, with a record, a broker and a site of a test."""

    def __init__(self, folder: Path, composed: dict[str, Any], record: str, broker: str) -> None:
        self._folder, self._composed = folder, composed
        self.site = f"test-{uuid4().hex[:12]}"
        self._urls = {r"postgresql://\S+": record, r"amqp://\S+": broker, "site-b": self.site}
        self._started: list[Processes] = []

    def start(self, service: str) -> subprocess.Popen[bytes]:
        """Start the command of a service with its configuration."""
        about = self._composed["services"][service]
        [config] = about["configs"]
        assert config["target"] == PLACE
        text = self._composed["configs"][config["source"]]["content"]
        for pattern, own in self._urls.items():
            text = re.sub(pattern, own.replace("\\", r"\\"), text)
        home = self._folder / service
        home.mkdir()
        made = Processes(home)
        self._started.append(made)
        made.configuration.write_text(text, encoding="utf-8")
        program, *words = about["command"].split()
        assert words[:2] == ["--config-file", PLACE]
        return made.start(program, *words[2:])

    def told(self) -> str:
        """Return what the services wrote."""
        return "\n".join(made.told() for made in self._started)

    def close(self) -> None:
        """End all."""
        for made in reversed(self._started):
            made.close()


def actions(site: str) -> Iterator[Action]:
    """Yield actions for the site, and for workers of no site."""
    for number in range(12):
        tokens = (f"region:{site}",) if number % 2 else ()
        yield Action(uuid=str(uuid4()), name=f"a{number}", action_type="nop", tokens=tokens)


def test_two_appliers_and_three_workers_run_the_actions_of_a_plan(composed, tmp_path):
    broker = broker_for_tests()
    with database_for_tests() as record:
        local = Local(tmp_path, composed, record, broker)
        with closing(local):
            assert local.start("tables").wait(timeout=120) == 0, local.told()
            with closing(SqlStore(record)) as store:
                for name in ("worker-1", "worker-2", "worker-3", "applier-1", "applier-2"):
                    local.start(name)
                until(lambda: len(store.workers()) == 3, local.told)
                until(lambda: len(store.services()) == 2, local.told)
                served = sorted(list(worker.queues) for worker in store.workers())
                assert served == [["default"], [local.site], [local.site]]
                plan = ActionPlan(
                    uuid=str(uuid4()),
                    planner="weight",
                    actions=tuple(actions(local.site)),
                    state=PlanState.PENDING,
                )
                store.save_plan(plan)
                over = (PlanState.SUCCEEDED, PlanState.FAILED)
                until(lambda: store.load_plan(plan.uuid).state in over, local.told)
                ended = store.load_plan(plan.uuid)
                assert ended.state is PlanState.SUCCEEDED, local.told()
                assert [action.attempts for action in ended.actions] == [1] * 12
                assert store.jobs_of(plan.uuid) == []
        with kombu.Connection(broker, connect_timeout=5) as connection:
            connection.default_channel.queue_delete(f"actionplan.{local.site}")


def test_each_service_waits_for_what_it_needs(composed):
    services = composed["services"]
    programs = {
        name: str(about.get("command", "")).split(" ")[0] for name, about in services.items()
    }
    assert sorted(programs.values()) == sorted(
        ["", "", "actionplan", *["actionplan-applier"] * 2, *["actionplan-worker"] * 3]
    )
    for name, program in programs.items():
        if program in ("actionplan-applier", "actionplan-worker"):
            assert set(services[name]["depends_on"]) == {"tables", "broker"}
    used = {config["source"] for about in services.values() for config in about.get("configs", ())}
    assert used == set(composed["configs"])
