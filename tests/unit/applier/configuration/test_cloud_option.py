# SPDX-License-Identifier: Apache-2.0
"""``[actionplan] cloud`` names a plugin, which is made once from the options of its section."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from oslo_config import cfg

from applier import configuration
from applier.assembly import Assembly
from applier.clouds.simulated import SimulatedCloud
from applier.errors import ConfigurationError
from planner.errors import BrokenPlugin
from planner.making import registry


class Toy(SimulatedCloud):
    """A cloud of a third party."""

    OPTIONS = (
        cfg.StrOpt("url", default="here", help="Where it is."),
        cfg.IntOpt("port", default=1, min=1, help="At which port."),
    )
    IS_REAL = True
    called = "toy"
    made: list[object] = []
    closed = 0

    def __init__(self, *, url: str, port: int) -> None:
        super().__init__("cloud.json")
        self.url, self.port = url, port
        self.made.append(self)

    @property
    def name(self) -> str:
        return self.called

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture(autouse=True)
def third_party(monkeypatch: pytest.MonkeyPatch, offer: Callable[..., None]) -> None:
    """Register :class:`Toy` as the entry point ``toy``."""
    offer(registry.CLOUDS, "toy", f"{__name__}:Toy")
    monkeypatch.setattr(Toy, "made", [])
    monkeypatch.setattr(Toy, "closed", 0)


def read(folder: Path, text: str) -> cfg.ConfigOpts:
    file = folder / "watcher.conf"
    file.write_text(text, encoding="utf-8")
    return configuration.load([str(file)])


TOY = "[actionplan]\ncloud = toy\nsimulator_speed = 100\n[toy]\n"


def test_the_simulated_cloud_is_the_default_with_the_options_of_actionplan(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    assembly = Assembly(read(tmp_path, f"[actionplan]\nsimulator = {path}\n"))
    cloud = assembly.cloud()
    assert isinstance(cloud, SimulatedCloud)
    assert cloud.name == "simulated"
    cloud.host("compute-1")
    assert path.exists()


def test_a_cloud_is_made_once_from_the_options_of_its_section_and_closed(tmp_path: Path) -> None:
    assembly = Assembly(read(tmp_path, f"{TOY}url = there\n"))
    gate, found = threading.Barrier(8), list[object]()

    def use() -> None:
        gate.wait()
        found.append(assembly.cloud())

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (toy,) = Toy.made
    assert found == [toy] * 8
    assert (toy.url, toy.port) == ("there", 1)
    assembly.close()
    assembly.close()
    assert Toy.closed == 1


def test_an_unknown_cloud_is_refused_at_start(tmp_path: Path) -> None:
    text = r":2: \[actionplan\] cloud: .*'toi'.*'toy'.*simulated, toy"
    with pytest.raises(ConfigurationError, match=text):
        read(tmp_path, "[actionplan]\ncloud = toi\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[toy]\nurll = x\n", r":2: \[toy\] urll: .*'url'\?"),
        ("[toy]\nport = 0\n", r":2: \[toy\] port: Should be "),
        ("[simulated]\nspeed = 1\n", r":2: \[simulated\] speed: no such option"),
        ("[simulatd]\nspeed = 1\n", "'simulated'"),
    ],
)
def test_the_section_of_a_cloud_is_checked(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        read(tmp_path, text)


def test_the_options_of_a_cloud_are_listed() -> None:
    listed = dict(configuration.list_opts())
    assert listed["toy"] == Toy.OPTIONS
    assert "simulated" not in listed


@pytest.mark.parametrize("called", ["", "simulated"])
def test_a_cloud_cannot_pass_for_the_simulated_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str
) -> None:
    monkeypatch.setattr(Toy, "called", called)
    with pytest.raises(BrokenPlugin, match=f"it calls itself {called!r}"):
        Assembly(read(tmp_path, TOY)).cloud()


def test_what_is_no_cloud_is_refused(tmp_path: Path, offer: Callable[..., None]) -> None:
    offer(registry.CLOUDS, "toy", "pathlib:Path")
    with pytest.raises(BrokenPlugin, match=r"no subclass of applier\.contracts\.clouds\.Cloud"):
        Assembly(read(tmp_path, "[actionplan]\ncloud = toy\n")).check()


def test_a_cloud_that_does_not_take_its_options_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Toy, "OPTIONS", (*Toy.OPTIONS, cfg.StrOpt("colour", help="Which.")))
    with pytest.raises(BrokenPlugin, match=r"^cloud 'toy' .*: Toy\.__init__\(\) .* 'colour'$"):
        Assembly(read(tmp_path, TOY)).cloud()


@pytest.mark.parametrize(("cloud", "pace"), [("simulated", 100.0), ("toy", 1.0)])
def test_pauses_are_not_shortened_beside_a_real_cloud(
    tmp_path: Path, cloud: str, pace: float
) -> None:
    text = f"[actionplan]\ncloud = {cloud}\nsimulator_speed = 100\n"
    url = f"connection = sqlite:///{tmp_path}/plans.db\n"
    runner = Assembly(read(tmp_path, text + url)).runner()
    assert runner.environment.pace == pace
