# SPDX-License-Identifier: Apache-2.0
"""Plugins by name: those that are installed, those that are not, and those that are broken."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg

from planner.errors import BrokenPlugin, UnknownPlugin
from planner.making import registry
from planner.planners.weight import WeightPlanner

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]


def test_the_planners_are_listed_in_alphabetical_order() -> None:
    assert list(registry.names(registry.PLANNERS)) == sorted(
        {"weight", "workload_stabilization", "node_resource_consolidation"}
        | set(registry.names(registry.PLANNERS))
    )


def test_a_planner_is_found_by_name() -> None:
    assert registry.planner("weight") is WeightPlanner


def test_an_unknown_planner_is_answered_with_the_nearest_and_all() -> None:
    with pytest.raises(UnknownPlugin) as refused:
        registry.planner("wieght")
    assert (refused.value.what, refused.value.name) == ("planner", "wieght")
    assert "'weight'?" in str(refused.value)
    assert "node_resource_consolidation" in str(refused.value)
    assert set(refused.value.known) == set(registry.names(registry.PLANNERS))


def test_an_unknown_action_type_is_answered_with_the_nearest_and_all() -> None:
    with pytest.raises(UnknownPlugin, match="did you mean 'migrate'") as refused:
        registry.ActionTypes()["migrte"]
    assert (refused.value.what, refused.value.name) == ("action type", "migrte")


def test_action_types_are_a_mapping_by_name() -> None:
    known = registry.ActionTypes()
    assert tuple(known) == registry.names(registry.ACTIONS)
    assert len(known) == len(list(known))
    assert known["nop"].TYPE == "nop"
    assert known["nop"] is known["nop"]


def in_scratch(folder: Path, code: str, **distributions: str) -> str:
    """Run code where these distributions are installed, each with the entry points of its text."""
    for name, entry_points in distributions.items():
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", f"from planner.making import registry\n{code}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


OFFER = "[actionplan.planners]\nheaviest = planner.planners.weight:WeightPlanner\n"


def test_one_name_from_two_distributions_is_an_error_that_names_both_targets(
    tmp_path: Path,
) -> None:
    other = "[actionplan.planners]\nheaviest = no_such_module:Heavy\n"
    told = in_scratch(tmp_path, "registry.planner('heaviest')", acme=OFFER, zenith=other)
    line = told.splitlines()[-1]
    targets = ("no_such_module:Heavy", "planner.planners.weight:WeightPlanner")
    assert all(fact in line for fact in ("AmbiguousPlugin: ", "'heaviest'", *targets))


def test_two_distributions_may_offer_the_same_class(tmp_path: Path) -> None:
    code = "print(registry.planner('heaviest').__name__)"
    assert in_scratch(tmp_path, code, acme=OFFER, zenith=OFFER) == "WeightPlanner\n"


def test_what_is_installed_while_entry_points_are_cached_is_found_at_once(tmp_path: Path) -> None:
    code = "print('heaviest' in registry.names('actionplan.planners'))"
    assert in_scratch(tmp_path, code) == "False\n"
    assert in_scratch(tmp_path, code, acme=OFFER) == "True\n"


def test_a_name_that_one_distribution_offers_is_found(tmp_path: Path) -> None:
    told = in_scratch(tmp_path, "print(registry.planner('heaviest').__name__)", acme=OFFER)
    assert told == "WeightPlanner\n"


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1 / 0", "ZeroDivisionError: division by zero"),
        ("", "AttributeError: module 'broken' has no attribute 'Planner'"),
        ("Planner = 5", "it is no subclass of planner.contract.Planner"),
    ],
)
def test_a_planner_that_cannot_be_used_says_why(tmp_path: Path, module: str, reason: str) -> None:
    (tmp_path / "broken.py").write_text(module)
    told = in_scratch(
        tmp_path,
        "registry.planner('odd')",
        acme="[actionplan.planners]\nodd = broken:Planner\n",
    )
    assert "BrokenPlugin: planner 'odd' " in told
    assert reason in told


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("TYPE = 'odd'", "it has no SCHEMA, touches, estimate, describe"),
        (
            "TYPE = 'even'; SCHEMA = {}; touches = estimate = describe = None",
            "it is registered as 'odd' and calls itself 'even'",
        ),
        (
            "TYPE = 'odd'; SCHEMA = {'items': {'$ref': '#/$defs/a'}}; "
            "touches = estimate = describe = None",
            "its schema has $ref '#/$defs/a', which leads to no schema in it",
        ),
    ],
)
def test_an_action_type_that_breaks_its_contract_says_how(
    tmp_path: Path, body: str, reason: str
) -> None:
    (tmp_path / "broken.py").write_text(f"class Odd:\n    {body}\n")
    told = in_scratch(
        tmp_path,
        "registry.ActionTypes()['odd']",
        acme="[actionplan.actions]\nodd = broken:Odd\n",
    )
    assert "BrokenPlugin: action type 'odd' " in told
    assert reason in told


def test_the_schema_of_a_broken_action_type_is_checked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/gone"}}}
    methods = dict.fromkeys(("touches", "estimate", "describe"))
    odd = type("Odd", (), {"TYPE": "odd", "SCHEMA": schema, **methods})
    monkeypatch.setattr(registry, "load", lambda *_: odd)
    checked, check = [], registry.in_place
    monkeypatch.setattr(registry, "in_place", lambda s: (checked.append(s), check(s)))
    types = registry.ActionTypes()
    for _ in range(3):
        with pytest.raises(BrokenPlugin, match="'odd' cannot be used: its schema has"):
            types["odd"]
    assert checked == [schema]


def test_the_definitions_of_an_action_type_are_in_place_once_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"writeOnly": True}}}
    methods = dict.fromkeys(("touches", "estimate", "describe"))
    odd = type("Odd", (), {"TYPE": "odd", "SCHEMA": schema, **methods})
    monkeypatch.setattr(registry, "load", lambda *_: odd)
    assert registry.ActionTypes()["odd"].SCHEMA == {"items": {"writeOnly": True}}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("[cfg.StrOpt('a-b'), cfg.IntOpt('a_b')]", "it declares two options 'a_b'"),
        ("[1]", "its OPTIONS are not a list of oslo.config options"),
    ],
)
def test_options_of_planners_that_cannot_be_used_are_refused_when_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch, options: str, reason: str
) -> None:
    planner = type("Odd", (WeightPlanner,), {"OPTIONS": eval(options, {"cfg": cfg})})  # noqa: S307
    monkeypatch.setattr(registry, "load", lambda *_: planner)
    with pytest.raises(BrokenPlugin, match=f"planner 'odd' cannot be used: {re.escape(reason)}"):
        registry.planner("odd")


def test_a_broken_plugin_does_not_hide_the_others(tmp_path: Path) -> None:
    code = "print('odd' in registry.names('actionplan.planners'), registry.planner('weight').NAME)"
    told = in_scratch(tmp_path, code, acme="[actionplan.planners]\nodd = broken:Planner\n")
    assert told == "True weight\n"


def test_the_facts_of_a_refusal_are_kept() -> None:
    refused = BrokenPlugin("planner", "odd", "it is odd")
    assert (refused.what, refused.name, refused.reason) == ("planner", "odd", "it is odd")
