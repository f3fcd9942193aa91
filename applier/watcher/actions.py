# SPDX-License-Identifier: Apache-2.0
"""Adapts Watcher's action plugins (``watcher_actions``) to ActionPlugin; they run unchanged."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, ClassVar

from oslo_config import cfg
from watcher.applier.loading.default import DefaultActionLoader
from watcher.common import nova_helper
from watcher.common.exception import (
    ActionExecutionFailure,
    ActionSkipped,
    LoadingError,
    WatcherException,
)

from applier.configuration.plugin_options import OnFirstUse
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from applier.watcher.engine_options import TypeTouches
from planner.errors import BrokenPlugin, UnknownPlugin
from planner.making import registry
from planner.plan.model import Touch
from planner.plan.states import Outcome

CONF = cfg.CONF
#: Never set; its ``wait`` is used to sleep.
_NEVER = threading.Event()


def patience_s() -> float:
    """Return how many seconds a rule may take: 30 more than Watcher waits for a migration."""
    return float(CONF.nova.migration_max_retries * CONF.nova.migration_interval) + 30.0


def migrated(action: Any) -> Verified:
    """Wait until Nova has no task for the instance; then decide by the host of the instance.

    The migration is DONE if that is the destination or, without a destination, any host but the
    source. It is NOT_DONE if that is the source. It is IN_DOUBT on another host, while a cold
    migration waits for its confirmation, and if Nova's task does not end in time.
    """
    nova = nova_helper.NovaHelper()
    server = nova.find_instance(action.instance_uuid)
    for _ in range(CONF.nova.migration_max_retries):
        if not server.task_state:
            break
        _NEVER.wait(CONF.nova.migration_interval)
        server = nova.find_instance(action.instance_uuid)
    if server.task_state or not server.host or server.status == "VERIFY_RESIZE":
        return Verified.IN_DOUBT
    if server.host == action.source_node:
        return Verified.NOT_DONE
    if action.destination_node in (None, server.host):
        return Verified.DONE
    return Verified.IN_DOUBT


#: The rules by action type.
VERIFIERS: Mapping[str, Callable[[Any], Verified]] = {"migrate": migrated}


LOG = logging.getLogger(__name__)

#: The types that may run again after an interrupted attempt without harm.
RERUN_SAFE = frozenset({"nop", "sleep", "change_nova_service_state"})


class WatcherAction(ActionPlugin):
    """Base class of the adapted types: calls pre_condition, execute and post_condition of Watcher.

    ``make`` creates Watcher's object of the action. ``on_begin`` is called with the action's uuid
    after its pre_condition has passed. The messages are those of Watcher's own engine.
    """

    SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object"}
    #: Since Watcher 2026.1, running actions are not aborted when their plan is cancelled.
    STOPPABLE = False
    REVERTIBLE = True
    make: ClassVar[Callable[[], Any]]
    on_begin: ClassVar[Callable[[str], None]]

    def precheck(self) -> None:
        """Call pre_condition; raise AlreadyDone if it raises ActionSkipped, else ActionFailed.

        After other errors than ActionSkipped, post_condition is called.
        """
        try:
            self._work = self._made()
            self._work.pre_condition()
        except ActionSkipped as reason:
            raise AlreadyDone(f"Action was skipped automatically: {reason}") from reason
        except Exception as reason:
            self._clean_up()
            raise _failed("pre_condition", reason) from reason
        type(self).on_begin(self.context.name)

    def execute(self, stop: StopSignal) -> Outcome:  # noqa: ARG002
        try:
            if self._work.execute() is not True:
                raise ActionExecutionFailure(action_id=self.context.name)
        except Exception as reason:
            self._clean_up()
            raise _failed("execute", reason) from reason
        try:
            self._work.post_condition()
        except Exception as reason:
            raise _failed("post_condition", reason) from reason
        return Outcome.CHANGED

    def verify(self) -> Verified:
        rule = VERIFIERS.get(self.TYPE)
        return rule(self._made()) if rule else Verified.IN_DOUBT

    def revert(self, stop: StopSignal) -> Outcome:  # noqa: ARG002
        if not self._made().revert():
            raise ActionFailed(f"{self.TYPE} could not be reverted")
        return Outcome.CHANGED

    def _made(self) -> Any:
        made = type(self).make()
        made.input_parameters = dict(self.parameters)
        made.validate_parameters()
        return made

    def _clean_up(self) -> None:
        """Call post_condition after a failure; log its error, because the failure is reported."""
        try:
            if hasattr(self, "_work"):
                self._work.post_condition()
        except Exception as reason:  # noqa: BLE001 -- the first failure is reported; this one is logged
            LOG.warning(
                "Action %s: its post_condition failed as well: %s", self.context.name, reason
            )


class WatcherTypes(OnFirstUse[type[ActionPlugin]]):
    """Watcher's action types by name; each is imported when it is first accessed.

    The touches of a type are those of its entry in ``touches``, else those of the ActionPlan type
    of that name, else none. ``osc`` returns the OpenStack clients that Watcher's actions share.
    ``on_begin`` is that of :class:`WatcherAction`.
    """

    def __init__(
        self,
        touches: Mapping[str, TypeTouches],
        *,
        osc: Callable[[], Any] = lambda: None,
        on_begin: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._touches, self._osc, self._on_begin = touches, osc, on_begin
        self._loader = DefaultActionLoader()
        self._own = registry.ActionTypes()
        super().__init__(registry.names("watcher_actions"), self._adapted)

    def _adapted(self, name: str) -> type[ActionPlugin]:
        """Import a type; raises BrokenPlugin if it is unusable."""
        try:
            loaded = self._loader.load(name)
        except LoadingError as reason:
            raise BrokenPlugin("action type", name, str(reason)) from reason

        def make() -> Any:
            return type(loaded)(loaded.config, osc=self._osc())

        members: dict[str, Any] = {
            "TYPE": name,
            "RERUN_SAFE": name in RERUN_SAFE,
            "JOINS_WORK": name in RERUN_SAFE or name in VERIFIERS,
            "make": staticmethod(make),
            "on_begin": staticmethod(self._on_begin),
        }
        return type(f"Watcher_{name}", (WatcherAction,), members | self._planned(name))

    def _planned(self, name: str) -> dict[str, Any]:
        """Return the methods ``touches`` and ``describe`` of a type, as far as they are known."""
        line = self._touches.get(name)
        if line is not None:
            return {"touches": staticmethod(partial(_configured, line))}
        try:
            own = self._own[name]
        except UnknownPlugin:
            _say_unknown(name)
            return {}
        return {key: staticmethod(getattr(own, key)) for key in ("touches", "describe")}


@cache
def _say_unknown(name: str) -> None:
    """Log a warning, once per process and type, that the touches of a type are not known."""
    LOG.warning(
        "What actions of type %s touch is not known: they keep their order, and hold no resources. "
        "It can be said in the option touches of [watcher_workflow_engines.actionplan].",
        name,
    )


def _configured(line: TypeTouches, parameters: Mapping[str, Any]) -> Sequence[Touch]:
    return line.of(parameters)


def _failed(phase: str, reason: Exception) -> ActionFailed:
    """Return the ActionFailed for an error in a phase, such as ``execute``.

    Its message names the class of an error that is not one of Watcher's.
    """
    text = str(reason).partition("\n")[0]
    if not isinstance(reason, WatcherException):
        text = f"{type(reason).__name__}: {text}" if text else type(reason).__name__
    return ActionFailed(f"Action failed in {phase}: {text}")
