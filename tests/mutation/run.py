# SPDX-License-Identifier: Apache-2.0
"""How many small changes to the source no test notices: each is made in a copy, and tests are run.

Run it: ``python tests/mutation/run.py --sample 40 --seed 1 applier/scheduling``. It prints each
change that survived the tests, as file:line and difference, and the share of them; it ends with 1
where a share is not under a tenth. It needs the environment of ``./check`` and in it the extra
``mutation``.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

from mutants import Mutant, pick

#: Which tests concern a file; the first line that fits counts. Those that name the changed module
#: run first. Tests that start processes or talk to servers are left out: they are marked.
TESTS = {
    "applier/scheduling": "tests/unit/applier/scheduling tests/property/test_gates.py"
    " tests/property/test_places.py"
    " tests/property/test_scheduler.py"
    " tests/property/test_scheduler_troubles.py tests/property/test_slack.py",
    "applier/engines": "tests/unit/applier/engines tests/unit/applier/run/test_runner.py"
    " tests/unit/applier/run/test_runner_faults.py tests/contract/test_engines.py"
    " tests/contract/test_executors.py",
    "applier/run": "tests/unit/applier/run tests/unit/applier/service"
    " tests/property/test_life_of_a_plan.py",
    "applier/storage": "tests/unit/applier/storage tests/contract/test_stores.py"
    " tests/contract/test_record_check.py",
    "applier/guarding": "tests/unit/applier/guarding tests/unit/applier/operations"
    " tests/unit/applier/scheduling tests/unit/planner/guards/test_guards.py",
    "applier/workers": "tests/unit/applier/workers tests/contract/test_executors.py"
    " tests/unit/applier/configuration",
    "applier/rehearsal": "tests/unit/applier/rehearsal",
    "applier/operations": "tests/unit/applier/operations tests/unit/applier/guarding"
    " tests/unit/applier/rehearsal tests/unit/applier/api tests/unit/applier/cli",
    "applier/service": "tests/unit/applier/service tests/unit/applier/run tests/unit/applier/cli",
    "applier/api": "tests/unit/applier/api",
    "applier/cli": "tests/unit/applier/cli",
    # The rest of what runs inside Watcher is tried there, by tests/watcher.
    **dict.fromkeys(
        (f"applier/watcher/{it}" for it in ("engine_options", "plans", "states")),
        "tests/unit/applier/watcher",
    ),
    "planner/planners/deployment": "tests/unit/planner/planners/test_deployment.py"
    " tests/unit/planner/planners tests/unit/planner/test_cases.py"
    " tests/unit/planner/test_deployment_graphs.py tests/property/test_deployments.py"
    " tests/property/test_role_based.py",
    "planner/planners/rolling_update": "tests/unit/planner/planners/rolling_update"
    " tests/unit/planner/planners/test_fields.py tests/unit/planner/test_cases.py"
    " tests/property/test_rolling_update.py",
    "planner/planners/events": "tests/unit/planner/planners/events"
    " tests/unit/planner/planners/test_fields.py tests/unit/planner/test_cases.py"
    " tests/unit/planner/test_solar_golden.py tests/property/test_events_planner.py",
    "planner/planners": "tests/unit/planner/planners tests/unit/planner/test_cases.py"
    " tests/unit/planner/test_watcher_golden.py tests/property/test_planners.py",
    "planner/guards": "tests/unit/planner/guards tests/unit/applier/guarding",
    "planner/plan/extent": "tests/unit/planner/guards tests/unit/applier/guarding",
    "planner": "tests/unit/planner tests/property/test_planners.py",
}
#: Loaded once: what tests import and no mutant changes.
LIBRARIES = (
    "hypothesis pytest networkx jsonschema oslo_config.cfg"
    " taskflow.engines yaml stevedore rich.console cliff.app"
)
#: Said because of the library that is loaded once.
UNIMPORTANT = "ignore::pytest.PytestAssertRewriteWarning"
#: Not changed: test_worker_fleet.py runs it with a real broker.
SLOWLY_TESTED = frozenset({"celery_app.py"})
#: Left alone by the tests of a copy.
LEFT_OUT = (".git", ".venv", ".*_cache", "__pycache__", ".hypothesis", "_build", "*.egg-info")
#: A change may make the tests take so many times as long, or so many seconds; then they hang.
PATIENCE, AT_LEAST = 3, 45
#: Bytes of address space for the tests of one change, which may collect or start without an end.
MOST_MEMORY = 4 * 2**30
#: The share that survives has to be smaller.
MOST = 0.1
processes = get_context("fork")


def main() -> int:
    """Try the folders that are named, and return 1 where too much survives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="or file, such as applier/run")
    parser.add_argument("--sample", type=int, default=40, help="how many changes of each folder")
    parser.add_argument("--seed", type=int, default=1, help="another number picks other changes")
    arguments = parser.parse_args()
    for name in LIBRARIES.split():
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(Path.cwd(), copy, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        shares = [
            survived(copy, it.rstrip("/"), arguments.sample, arguments.seed)
            for it in arguments.folders
        ]
    return int(any(share >= MOST for share in shares))


def survived(copy: Path, folder: str, sample: int, seed: int) -> float:
    """Try a sample of one folder, print what survives, and return its share."""
    whole = copy / folder
    files = [it for it in [whole, *sorted(whole.rglob("*.py"))] if it.suffix == ".py"]
    names = [str(it.relative_to(copy)) for it in files if SLOWLY_TESTED.isdisjoint(it.parts)]
    tests = list(dict.fromkeys(test for name in names for test in tests_of(name)))
    if not tests:
        sys.exit(f"{folder}: not a folder or file of these: {', '.join(TESTS)}")
    began = time.monotonic()
    if noticed(copy, [folder, *tests], limit=3600):
        sys.exit(f"{folder}: its tests fail without a change:\n{(copy / 'output').read_text()}")
    limit = max(AT_LEAST, PATIENCE * (time.monotonic() - began))
    chosen = pick(copy, names, sample, seed)
    count = hung = 0
    for number, mutant in enumerate(chosen, 1):
        print(f"{number}: {mutant.file}:{mutant.line}", file=sys.stderr)
        how = tried(copy, mutant, limit)
        count, hung = count + (how == ""), hung + (how == "hung")
    share = count / max(1, len(chosen))
    taken = (time.monotonic() - began) / 60
    print(
        f"{folder}: {len(chosen)} changes, {count} survived ({share:.1%}), {hung} hung;"
        f" {taken:.1f} min",
        flush=True,
    )
    return share


def tried(copy: Path, mutant: Mutant, limit: float) -> str:
    """Make one change, run the tests, undo it; return how it was noticed, or nothing."""
    file = copy / mutant.file
    source = file.read_text(encoding="utf-8")
    changed = mutant.changed(source)
    file.write_text(changed, encoding="utf-8")
    try:
        steps = in_steps(copy, mutant.file)
        how = next(filter(None, (noticed(copy, step, limit) for step in steps)), "")
    finally:
        file.write_text(source, encoding="utf-8")
    if not how:
        print(f"{mutant.file}:{mutant.line}: {mutant.operator}")
        lines = difflib.unified_diff(source.splitlines(), changed.splitlines(), lineterm="", n=2)
        print("\n".join(list(lines)[2:]), flush=True)
    return how


def tests_of(file: str) -> list[str]:
    """Return the tests that concern a file."""
    return next((tests.split() for key, tests in TESTS.items() if file.startswith(key)), [])


def in_steps(copy: Path, file: str) -> list[list[str]]:
    """Part the tests of a module: its doctests and unit tests that name it, then all others."""
    module = file.removesuffix(".py").replace("/", ".")
    first, then = [file], []
    for test in tests_of(file):
        path = copy / test
        for it in [path] if path.is_file() else sorted(path.rglob("test_*.py")):
            named = "unit" in it.parts and module in it.read_text(encoding="utf-8")
            (first if named else then).append(str(it.relative_to(copy)))
    return [first, then]


def noticed(copy: Path, tests: list[str], limit: float) -> str:
    """Run tests until the first fails; say that they ``failed`` or ``hung``, or nothing."""
    child = processes.Process(target=run_tests, args=(copy, tests))
    child.start()
    try:
        child.join(limit)
        return "hung" if child.is_alive() else "failed" if child.exitcode else ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.join()


def run_tests(copy: Path, tests: list[str]) -> None:
    """Be the process that runs tests, with all that it starts in a group of its own."""
    import pytest
    from hypothesis import Phase, settings

    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.chdir(copy)
    sys.modules["__main__"] = pytest  # as in python -m pytest: processes that are spawned load it
    sys.path[0] = os.environ["PYTHONPATH"] = str(copy)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    # Few examples, always the same, and no search for the smallest that fails: that is for people.
    settings.register_profile(
        "mutation",
        max_examples=30,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
    )
    options = ["-x", "-m", "not slow and not server", "-p", "no:cacheprovider", "-W", UNIMPORTANT]
    code = pytest.main([*options, "--hypothesis-profile=mutation", *tests])
    # A module without doctests that no unit test names is noticed by none of these.
    os._exit(0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code)


if __name__ == "__main__":
    sys.exit(main())
