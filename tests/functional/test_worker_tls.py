# SPDX-License-Identifier: Apache-2.0
"""Appliers and workers reach a broker by TLS only if its certificate is of its host."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from scratch_broker import broker_for_tests
from worker_processes import fleet_for_tests, until

from applier.store.worker_jobs import AttemptKey
from applier.workers.celery_app import CeleryDelivery, celery_app
from planner.plan.states import PlanState

PROXY = Path(__file__).with_name("tls_proxy.py")
pytestmark = [pytest.mark.server, pytest.mark.needs("openssl")]


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
