"""What a planner is: a name, its options, the documents it reads, and a pure function to a plan.

A plugin is one class, registered under ``watcher_planners``. Those that plan a solution start from
:class:`planner.planners.solution.SolutionPlanner`, which reads the document.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from planner.errors import Mistake, Path
from planner.model import ActionPlan, Touch

if TYPE_CHECKING:
    from oslo_config import cfg

Problem = TypeVar("Problem")
#: The values of a planner's options by name, after defaults, files and overrides are merged.
Options = Any


class ActionType(Protocol):
    """What planners know of an action type; the plugin classes of ``watcher_actions`` have it."""

    TYPE: ClassVar[str]
    SCHEMA: ClassVar[Mapping[str, Any]]

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        """Say which resources it works on, and what it does to them."""

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:
        """Say how many seconds it will take, or None."""

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say in a few words what it will do to what."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What planning is given besides the problem, as values.

    ``action_type(name)`` gives the type or raises UnknownPlugin; ``check(name, parameters)`` lists
    what is wrong with parameters, paths starting inside them. Without ``check_types``, types that
    nobody offers and parameters are taken as they are. ``locate(path)`` gives ``file:line`` of a
    place in the document, for warnings; None where nobody knows.
    """

    now: Callable[[], datetime]
    new_id: Callable[[], str]
    action_type: Callable[[str], type[ActionType]]
    check: Callable[[str, Mapping[str, Any]], Sequence[Mistake]]
    check_types: bool = True
    locate: Callable[[Path], str | None] = lambda _: None


class Planner(ABC, Generic[Problem]):
    """Turns a problem into a plan. Neither method does input or output."""

    #: Name of the planner, as in ``[watcher_planner] planner``.
    NAME: ClassVar[str]
    #: ``kind`` of the documents it reads.
    KIND: ClassVar[str]
    #: JSON Schema (draft 2020-12) of those documents.
    SCHEMA: ClassVar[Mapping[str, Any]]
    #: Fields that name files -> the field that holds what stands in them. A text names one file; of
    #: a list of files, each holds a list, and these are put behind what the other field has itself.
    FILES: ClassVar[Mapping[str, str]] = {}
    #: Options of the section ``[watcher_planners.NAME]``. A field of the document that has the name
    #: of one sets it.
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings

    @abstractmethod
    def parse(self, document: Mapping[str, Any]) -> Problem:
        """Turn a document that fits SCHEMA into a problem; raises InvalidInput, all at once."""

    @abstractmethod
    def plan(self, problem: Problem, options: Options) -> ActionPlan:
        """Turn a problem into a plan: the same plan for the same problem, but for ids and times.

        Raises InvalidInput for what only planning can find out.
        """
