# SPDX-License-Identifier: Apache-2.0
"""Clients that generators make of the description, without a line by hand, run a maintenance."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import programs
import pytest
from api_client import PROGRAM, api_process, configured
from environments import CLIENTS, require

HERE = Path(__file__).parent / "generated"
#: What openapi-generator 7.26 says of any description with a schema, as of one with one text.
_UNAVOIDABLE = "Failed to get the schema name: null"


def ran(*command: str | Path, folder: Path) -> str:
    """Run a program to its good end, with those of the environment in its PATH."""
    path = f"{CLIENTS.folder / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(folder)}
    ended = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.long
def test_a_maintenance_by_generated_clients(actionplan, subtests):
    require(CLIENTS)
    folder, applier = actionplan.folder, PROGRAM.with_name("actionplan-applier")
    with api_process(configured(actionplan, port=0), applier, "--with-api") as api:
        described = api("/v2/openapi.json").json
        (folder / "openapi.json").write_text(json.dumps(described))
        with subtests.test("the description is valid"):
            ran(CLIENTS.program("openapi-spec-validator"), "openapi.json", folder=folder)
        with subtests.test("openapi-python-client"):
            make = CLIENTS.program("openapi-python-client")
            options = ("--path", "openapi.json", "--meta", "none", "--output-path", "client")
            said = ran(make, "generate", *options, "--fail-on-warning", folder=folder)
            assert said.split() == ["Generating", "client"]
            maintenance = HERE / "with_openapi_python_client.py"
            assert ran(CLIENTS.python, maintenance, api.url, folder=folder) == "done\n"
        with subtests.test("openapi-generator"):
            programs.require("java")
            make = CLIENTS.program("openapi-generator-cli")
            said = ran(make, "generate", "-i", "openapi.json", "-g", "python", folder=folder)
            lines = [line for line in said.splitlines() if "WARN" in line or "ERROR" in line]
            assert [one for one in lines if not one.endswith(_UNAVOIDABLE)] == []
            maintenance = HERE / "with_openapi_generator.py"
            assert ran(CLIENTS.python, maintenance, api.url, folder=folder) == "done\n"
