# SPDX-License-Identifier: Apache-2.0
"""What is made from the sources, or follows them: manual, sample, hooks, the way of an action."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from applier import configuration

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "doc" / "actionplan.1"
SAMPLE = ROOT / "etc" / "watcher.conf.sample"
WAY = ROOT / "doc/architecture/one-action.rst"


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


def test_a_script_is_one_that_bash_reads():
    for script in ("demo", "check", "tools/environment", ".ci/run"):
        ended = subprocess.run(["bash", "-n", ROOT / script], capture_output=True, check=False)
        assert (ended.returncode, ended.stderr) == (0, b""), script


# The sample configuration


#: Generates the sample as a machine with another name and home would.
ELSEWHERE = """
import socket, sys
socket.gethostname = socket.getfqdn = lambda *_: "elsewhere"
from oslo_config import generator
generator.main(sys.argv[1:])
"""


def values(file: Path) -> dict[tuple[str, str], Any]:
    """Read every option through a file, as the program does."""
    conf = configuration.load([str(file)])
    configuration.register_all(conf)
    found = {}
    for group, options in configuration.list_opts():
        name = group if isinstance(group, str) else group.name
        found.update({(name, o.name): conf[name][o.dest] for o in options})
    return found


def test_the_sample_says_what_the_options_say_on_any_machine(tmp_path):
    arguments = ["--config-file", str(ROOT / "etc" / "oslo-config-generator.conf")]
    arguments += ["--output-file", str(tmp_path / "sample")]
    subprocess.run(
        [sys.executable, "-c", ELSEWHERE, *arguments],
        check=True,
        env={"HOME": "/home/elsewhere", "USER": "elsewhere", "XDG_STATE_HOME": "/state/elsewhere"},
    )
    assert (tmp_path / "sample").read_text(encoding="utf-8") == SAMPLE.read_text(
        encoding="utf-8"
    ), "if the options are right, write the sample anew: ./check --step 'Sample configuration'"


def test_every_option_has_a_help_that_is_a_sentence():
    for _, options in configuration.list_opts():
        for option in options:
            assert re.fullmatch(r"[A-Z].*\.", option.help or "", re.DOTALL), option.name


def test_the_sample_as_it_is_changes_nothing(tmp_path):
    empty = tmp_path / "empty.conf"
    empty.touch()
    assert values(SAMPLE) == values(empty)


def test_the_sample_with_every_line_uncommented_loads(tmp_path):
    text = re.sub(r"^#(?=\w+ =)", "", SAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    file = tmp_path / "watcher.conf"
    file.write_text(text, encoding="utf-8")
    set_there = set(re.findall(r"^(\w+) =", text, flags=re.MULTILINE))
    assert set_there == {option for _, option in values(file)}


# The page about the way of one action


def entered(folder: Path) -> set[str]:
    """Return the files that applying the document of the page enters."""
    page = WAY.read_text(encoding="utf-8")
    block = re.search(r"\.\. code-block:: yaml\n\n((?:   .*\n)+)", page)
    assert block
    document = folder / "nop.yaml"
    document.write_text(re.sub("^   ", "", block[1], flags=re.M), encoding="utf-8")
    found = folder / "entered.json"
    program = [sys.executable, str(ROOT / "tests/functional/trace.py"), str(found)]
    homes = dict.fromkeys(("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"), str(folder))
    for _ in range(2):  # the first run makes the record
        line = [*program, "apply", str(document), "--yes"]
        subprocess.run(line, check=True, capture_output=True, cwd=ROOT, env={**os.environ, **homes})
    return {file_of(module) for module in json.loads(found.read_text(encoding="utf-8"))}


def file_of(module: str) -> str:
    path = module.replace(".", "/")
    return f"{path}/__init__.py" if (ROOT / path).is_dir() else f"{path}.py"


#: A file of the product, ``folder/name.py``, or several, ``folder/{name,name}.py``.
NAMED = r"``((?:applier|planner)/(?:\w+/)*)(?:(\w+)|\{([\w,/]+)\})\.py``"


def test_the_page_names_every_file_that_is_entered_and_no_other(tmp_path):
    named = set()
    for folder, one, several in re.findall(NAMED, WAY.read_text("utf-8")):
        named |= {f"{folder}{name}.py" for name in (one or several).split(",")}
    assert named == entered(tmp_path)
    assert len(named) <= 80, "no way that a reader follows"
