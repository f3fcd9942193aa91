# SPDX-License-Identifier: Apache-2.0
"""The program for Watcher's plans where Watcher is not installed."""

from __future__ import annotations

import pytest

from applier.watcher import main


@pytest.mark.parametrize("words", [["--help"], ["show", "last"], ["resume", "--all"]])
def test_one_sentence_says_where_it_belongs(monkeypatch, capsys, words):
    monkeypatch.setattr(main, "find_spec", lambda _: None)
    assert main.main(words) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("actionplan-watcher ")
    assert printed.err.count("\n") == 1
