# SPDX-License-Identifier: Apache-2.0
"""Expressions in yaql: what they are on a node. The library comes with an extra."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from planner import documents
from planner.planners.deployment import expressions
from planner.planners.deployment.expressions import Evaluator, Unknown
from planner.planners.deployment.planner import DeploymentPlanner
from planner.testing import check_case

CASES = Path(__file__).parents[3] / "cases/deployment/yaql"


def test_without_the_extra_an_expression_has_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaql", None)
    with pytest.raises(Unknown, match=r"^it needs the extra 'yaql' \(pip install '\.\[yaql\]'"):
        Evaluator({}).value("$.a")


@pytest.mark.parametrize("file", sorted(CASES.glob("*.yaml")), ids=lambda f: f.stem)
def test_the_plan_is_what_the_case_expects(file: Path) -> None:
    pytest.importorskip("yaql")
    check_case(DeploymentPlanner, documents.read(file))


def test_no_expression_computes_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("yaql")
    monkeypatch.setattr(expressions, "MOST_CALLS", 1000)
    evaluator = Evaluator({})
    for text in (
        *("'a' * 1000000000", "range(100000000).where($ < 0).len()", "sequence().len()"),
        *(
            "pow(9, 99999999) > 1",
            "pow_(9, 99999999) > 1",
            "[1].cycle().len()",
            "def(f, f($)) -> f(1)",
            "random()",
            "now()",
        ),
        *("'a'.matches('(?!b)a')", "'b' !~ '('", "regex('a').matches('a')"),
        "range(900).select(range(900).select($ + 1).sum()).sum()",
    ):
        with pytest.raises(Unknown):
            evaluator.value(text)
    with pytest.raises(Unknown, match="the expressions need more than 1,000 calls"):
        evaluator.value("1 + 1")


def test_a_regular_expression_is_looked_for_in_linear_time() -> None:
    pytest.importorskip("yaql")
    evaluator = Evaluator({"names": ["primary-mongo", "cinder"]})
    for text in (
        "$.names.any($.matches('^(primary-)?(mongo)$'))",
        "$.names.where($ =~ 'in.*r$|x').len() = 1",
        "$.names.all($ !~ '^ongo')",
        *(f"not ('a' * 4000).matches('{p}')" for p in ("(a+)+b", "(?x)(a+) +b", "a*a*a*a*a*a*b")),
        *("('a' * 40).matches('" + "a?" * 20 + "')", "'aaab' !~ '(a|a)*c'"),
    ):
        assert evaluator.value(text) is True, text


def test_a_value_of_one_node_is_not_that_of_another() -> None:
    pytest.importorskip("yaql")
    roles = {"1": ["a", "b"], "2": ["a", "b"], "3": ["c"]}
    texts = (
        *("$.uid", "$node.uid", "$.roles.first()", "$.toJson()", "$node", "$.keys().orderBy($)"),
        *(
            "switch('c' in $.roles => $.uid, true => 0)",
            "$.on and $.uid = '3'",
            "$.gone",
            "$common",
        ),
    )
    settings = {"on": True}
    together = Evaluator(settings, roles)

    def value(evaluator: Evaluator, text: str, uid: str) -> object:
        try:
            return evaluator.value(text, uid)
        except Unknown as why:
            return str(why)

    for uid in roles:
        alone = Evaluator(settings, roles)
        for text in texts:
            assert value(together, text, uid) == value(alone, text, uid), (text, uid)
