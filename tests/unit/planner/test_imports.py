# SPDX-License-Identifier: Apache-2.0
"""Libraries that take long to import are imported by what uses them, and by nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

#: Top-level packages that are no part of Python or of this product, by a program that runs code.
PROGRAM = """
import sys
before = set(sys.modules)
{code}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(loaded - sys.stdlib_module_names))
"""


def loaded(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(code=code)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        "plan.model",
        "plan.states",
        "errors",
        "plan.digest",
        "contract",
        "schemas.checking",
        "documents",
    ],
)
def test_these_modules_import_no_library(module: str) -> None:
    assert loaded(f"import planner.{module}") == {"planner"}


def test_a_document_that_fits_needs_neither_jsonschema_nor_yaml(tmp_path) -> None:
    file = tmp_path / "two.json"
    file.write_text('{"actions": [{"action_type": "sleep", "input_parameters": {"duration": 1}}]}')
    found = loaded(f"from planner import make_plan; assert make_plan({str(file)!r}).actions")
    assert "jsonschema_rs" in found
    assert not found & {"jsonschema", "yaml"}


def test_a_document_that_does_not_fit_is_explained_by_jsonschema() -> None:
    code = """
from planner import PlannerError, make_plan
try:
    make_plan({"actions": 5})
except PlannerError as refused:
    assert str(refused) == "actions: 5 is not a list", refused
"""
    assert "jsonschema" in loaded(code)


def test_networkx_is_imported_by_what_orders_a_plan() -> None:
    for code, needs in (
        ("import planner", False),
        ("import planner; planner.order_graph([])", True),
    ):
        assert ("networkx" in loaded(code)) is needs
