# SPDX-License-Identifier: Apache-2.0
"""What is made from the sources: the manual page, the hooks that are steps."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "doc" / "actionplan.1"


# The manual page


def test_the_manual_page_says_what_the_verbs_say():
    spec = importlib.util.spec_from_file_location("man_page", ROOT / "tools" / "man_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert PAGE.read_text(encoding="utf-8") == module.page(), (
        "if the help of the verbs is right, write the page anew: python tools/man_page.py"
    )


@pytest.mark.needs("groff")
def test_man_reads_it_without_a_warning():
    read = ["groff", "-man", "-Tutf8", "-ww", "-z", str(PAGE)]
    ended = subprocess.run(read, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


# The hooks


def test_each_step_of_check_is_a_hook_and_no_hook_is_another_command():
    # What --all adds takes longer than a push should.
    text = (ROOT / "check").read_text(encoding="utf-8").partition("\nelse\n")[0]
    steps = [
        quoted or plain for quoted, plain in re.findall(r"^ *step (?:'(.+?)'|(\w+)) ", text, re.M)
    ]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0][
        "hooks"
    ]
    assert [hook["name"] for hook in hooks] == steps
    assert len(steps) >= 6
    for hook in hooks:
        name = hook["name"]
        assert hook["entry"] == f"./check --step {repr(name) if ' ' in name else name}"
        assert hook["language"] == "system"


def test_a_step_that_does_not_exist_is_refused():
    ended = subprocess.run(
        [ROOT / "check", "--step", "Nope"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "check: there is no step 'Nope'\n"
