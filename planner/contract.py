# SPDX-License-Identifier: Apache-2.0
"""The interface of planners: name, options, kind of document, and two pure methods.

A plugin is one class, registered as an entry point of ``actionplan.planners``. A planner of
solutions extends :class:`planner.planners.solution.SolutionPlanner`, which parses the document.
The names of OpenStack Watcher for all of this are in doc/how-to/coming-from-watcher.rst.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from planner.errors import Mistake, Path, UnknownPlugin
from planner.plan.model import Action, ActionPlan, Touch
from planner.plan.states import PlanState

if TYPE_CHECKING:
    from oslo_config import cfg

Problem = TypeVar("Problem")
#: The values of a planner's options by name, after defaults, files and overrides are merged.
Options = Any


class ActionType(Protocol):
    """The part of an action type that planners use; all of ``actionplan.actions`` have it."""

    TYPE: ClassVar[str]
    SCHEMA: ClassVar[Mapping[str, Any]]
    PATHS: ClassVar[Sequence[str]]

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        """List the resources that the action works on, and its effect on each."""

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:
        """Return the expected duration in seconds; None if there is no estimate."""

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Describe the action in a few words: what it does, and to which resource."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """The functions that a planner calls: clock, ids, action types, and places in the document.

    ``action_type(name)`` returns the type or raises UnknownPlugin. ``check(name, parameters)``
    lists the mistakes in parameters, with paths inside them. Without ``check_types``, unknown types
    and all parameters are accepted unchecked. ``locate(path)`` returns ``file:line`` of a path in
    the document, or None if it is not known; warnings use it.
    """

    now: Callable[[], datetime]
    new_id: Callable[[], str]
    action_type: Callable[[str], type[ActionType]]
    check: Callable[[str, Mapping[str, Any]], Sequence[Mistake]]
    check_types: bool = True
    locate: Callable[[Path], str | None] = lambda _: None

    def type_of(self, name: str) -> type[ActionType] | None:
        """Return an action type; None without one of that name."""
        try:
            return self.action_type(name)
        except UnknownPlugin:
            return None

    def told(self, warning: Mistake) -> str:
        """Return a warning as a plan has it: with the file and line of its place."""
        return str(warning._replace(place=self.locate(warning.path)))

    def new_ids(self, number: int) -> list[str]:
        """Return new ids in ascending order.

        A database appends rows of ascending ids to its indexes, which is much faster than inserting
        them at random places.
        """
        return sorted([self.new_id() for _ in range(number)])

    def new_plan(
        self, planner: str, actions: Sequence[Action], uuid: str | None = None, **fields: Any
    ) -> ActionPlan:
        """Return a new plan of these actions; one without actions is SUCCEEDED."""
        return ActionPlan(
            uuid=uuid or self.new_id(),
            planner=planner,
            actions=tuple(actions),
            state=PlanState.RECOMMENDED if actions else PlanState.SUCCEEDED,
            created_at=self.now(),
            **fields,
        )


class Planner(ABC, Generic[Problem]):
    """Parses a document into a problem, and turns the problem into an action plan.

    Neither method does input or output.
    """

    #: Name of the planner, as in ``[watcher_planner] planner``.
    NAME: ClassVar[str]
    #: ``kind`` of the documents it reads.
    KIND: ClassVar[str]
    #: JSON Schema (draft 2020-12) of those documents.
    SCHEMA: ClassVar[Mapping[str, Any]]
    #: Maps each field that names files to the field that receives their content. A text names one
    #: file. If the field is a list of file names, each of the files contains a list, and the lists
    #: are appended to the receiving field; an entry with the ``id`` of one of an earlier file
    #: replaces it. ``a.b`` is the field ``b`` of the mapping ``a``.
    FILES: ClassVar[Mapping[str, str]] = {}
    #: Fields of FILES whose file may be an inventory of Ansible, of which the hosts are received.
    INVENTORIES: ClassVar[Collection[str]] = ()
    #: Fields of FILES whose file is a playbook of Ansible, of which the plays are received. They
    #: keep their value; in it and in the field ``inventory``, the names become absolute paths.
    PLAYBOOKS: ClassVar[Collection[str]] = ()
    #: Options of the section ``[watcher_planners.NAME]``. A field of the document with the name of
    #: an option sets it.
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings

    @abstractmethod
    def parse(self, document: Mapping[str, Any]) -> Problem:
        """Parse a document, which fits SCHEMA, into a problem.

        Raises InvalidInput with all mistakes.
        """

    @abstractmethod
    def plan(self, problem: Problem, options: Options) -> ActionPlan:
        """Turn a problem into a plan. Equal problems give equal plans, except for ids and times.

        Raises InvalidInput for mistakes that only planning can find.
        """
