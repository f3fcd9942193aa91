# SPDX-License-Identifier: Apache-2.0
"""etc/watcher.conf.sample says what the options say, on every machine, and is a file that loads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from applier import configuration

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "etc" / "watcher.conf.sample"
GENERATOR = ROOT / "etc" / "oslo-config-generator.conf"

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
    arguments = ["--config-file", str(GENERATOR), "--output-file", str(tmp_path / "sample")]
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
