# SPDX-License-Identifier: Apache-2.0
"""Every file of tests/cases/PLANNER is a document and what is expected of it; no Python for more.

What a case may say is told in ``planner.testing``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from planner import documents
from planner.making import registry
from planner.testing import check_case

CASES = Path(__file__).parents[2] / "cases"
NAMES = registry.names(registry.PLANNERS)
FILES = [file for name in NAMES for file in sorted((CASES / name).glob("*.yaml"))]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_the_plan_is_what_the_case_expects(file: Path) -> None:
    planner = registry.planner(file.parent.name)
    check_case(planner, documents.read(file))


@pytest.mark.parametrize("name", NAMES)
def test_every_planner_has_a_dozen_cases(name: str) -> None:
    assert sum(file.parent.name == name for file in FILES) >= 12
