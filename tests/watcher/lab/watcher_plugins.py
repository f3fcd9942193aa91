# SPDX-License-Identifier: Apache-2.0
"""Prints as JSON what each loader of Watcher lists and loads, by a Python that has Watcher.

For each group of entry points: ``own`` is what Watcher brings itself, ``listed`` what the
loader lists, ``loaded`` what it loads; each a mapping of names to classes.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
from unittest import mock

from oslo_config import cfg
from watcher.applier.loading import default as of_applier
from watcher.common import config, service  # noqa: F401 - registers options
from watcher.decision_engine.loading import default as of_decision_engine

#: What each loader is told besides a name, as Watcher does.
LOADERS = {
    of_applier.DefaultActionLoader: {"osc": mock.Mock()},
    of_applier.DefaultWorkFlowEngineLoader: {"context": None, "applier_manager": None},
    of_decision_engine.DefaultPlannerLoader: {},
    of_decision_engine.DefaultGoalLoader: {},
    of_decision_engine.DefaultScoringLoader: {},
    of_decision_engine.DefaultScoringContainerLoader: {},
    of_decision_engine.DefaultStrategyLoader: {"osc": mock.Mock()},
    of_decision_engine.ClusterDataModelCollectorLoader: {},
}


def main():
    """Ask all loaders."""
    config.parse_args(["plugins"], default_config_files=["/dev/null"], default_config_dirs=[])
    logging.disable(logging.CRITICAL)
    cfg.CONF.set_override("transport_url", "fake:/")
    own = importlib.metadata.distribution("python-watcher").entry_points
    loaders = {loader(): words for loader, words in LOADERS.items()}
    print(json.dumps({each.namespace: found(each, own, loaders[each]) for each in loaders}))


def found(loader, own, words):
    """Return what a loader finds."""
    listed = loader.list_available()
    return {
        "own": {each.name: path(each.load()) for each in own.select(group=loader.namespace)},
        "listed": {name: path(kind) for name, kind in listed.items()},
        "loaded": {name: path(type(loader.load(name, **words))) for name in sorted(listed)},
    }


def path(kind):
    """Return where a class is found."""
    return f"{kind.__module__}:{kind.__qualname__}"


if __name__ == "__main__":
    main()
