# SPDX-License-Identifier: Apache-2.0
"""The functions of templates: what each gives, and what is said of wrong arguments.

A file of ``tests/cases/functions`` is a template. Beside it are values ``given`` to its parameters,
the parameters that are ``hidden``, functions that are ``not_evaluated``, and ``results``: what a
value ``is`` with all functions evaluated, or what is ``wrong``, from the place inside the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from planner import documents
from planner.planners.rolling_update.conditions import UNRESOLVED
from planner.planners.rolling_update.functions import Resolver

FOLDER = Path(__file__).parents[4] / "cases" / "functions"
CASES = {file.stem: documents.read(file).value for file in sorted(FOLDER.glob("*.yaml"))}
EACH_CASE = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@EACH_CASE
def test_a_function_gives_its_value_or_says_what_is_wrong(
    case: Mapping[str, Any], subtests: pytest.Subtests
) -> None:
    for result in case["results"]:
        with subtests.test(of=result["of"]):
            resolver = Resolver(case, case.get("given", {}), ("new",), case.get("hidden", ()))
            found = resolver.value(result["of"], ("here",))
            said = [str(mistake) for mistake in resolver.mistakes]
            if "is" in result:
                assert (said, found, type(found)) == ([], result["is"], type(result["is"]))
            else:
                assert said == [f"new.here{text}" for text in result["wrong"]]
                assert found is UNRESOLVED or isinstance(found, dict)


@EACH_CASE
def test_a_function_that_is_not_evaluated_is_refused(
    case: Mapping[str, Any], subtests: pytest.Subtests
) -> None:
    for name in case.get("not_evaluated", ()):
        with subtests.test(name):
            resolver = Resolver(case, {}, ())
            assert resolver.value({name: []}, ()) is UNRESOLVED
            (mistake,) = resolver.mistakes
            assert mistake.text.startswith(f"no function {name!r}; ")
            assert Resolver({}, {}, ()).value({name: []}, ()) == {name: []}


def test_the_parameters_that_are_used_or_declared_are_known() -> None:
    resolver = Resolver({"Parameters": {"A": {}}}, {"B": "b", "C": "c"}, ())
    assert resolver.value({"Ref": "B"}, ()) == "b"
    assert resolver.known_parameters == {"A", "B"}


def test_hidden_parameters_stay_hidden_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver({"Parameters": {"Password": {}}}, {"Password": "p"}, (), {"Password"})
    with monkeypatch.context() as broken:
        broken.setattr(Resolver, "value", lambda *_: (_ for _ in ()).throw(RecursionError()))
        with pytest.raises(RecursionError):
            resolver.revealed({"Ref": "Password"}, ())
    assert "NoEcho" in resolver.value({"Ref": "Password"}, ())
