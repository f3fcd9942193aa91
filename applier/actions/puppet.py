# SPDX-License-Identifier: Apache-2.0
"""Apply a puppet manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import commands, nodes, schemas
from applier.actions.parameters import one_line, text
from applier.contracts import ActionPlugin, Ended, Machine, StopSignal, Verified
from planner.states import Outcome

#: The outcome for each exit code of ``puppet apply --detailed-exitcodes``.
_OUTCOMES = {0: Outcome.OK, 2: Outcome.CHANGED}


class Puppet(ActionPlugin):
    """Run ``puppet apply`` with a manifest, and with the paths in ``modules``.

    Exit code 0 is ok (nothing had to change), 2 is changed, any other is a failure. Manifest and
    modules must be on the node.
    """

    TYPE = "puppet"
    MAIN = "manifest"
    #: True, because a manifest describes a state: applying it again changes nothing more.
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = nodes.parameters(
        {"manifest": {**schemas.TEXT, "description": "path of the manifest on the node"}},
        {
            "modules": {
                "type": "array",
                "items": schemas.TEXT,
                "description": "folders that are searched for modules, in this order",
            },
            "cwd": schemas.TEXT,
        },
        {"manifest": "/etc/puppet/manifests/ntp.pp", "modules": ["/etc/puppet/modules"]},
    )

    _ended: Ended | None = None

    touches = staticmethod(nodes.touches)
    works_outside = staticmethod(nodes.works_outside)
    runs_on = staticmethod(nodes.runs_on)
    estimate = staticmethod(nodes.estimate)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``puppet apply ntp.pp on node 3``."""
        name = one_line((text(parameters, "manifest") or "").rpartition("/")[2], 40)
        what = f"puppet apply {name}" if name else "puppet apply"
        return nodes.described(what, parameters)

    def precheck(self) -> None:
        """Raise ActionFailed if ``manifest`` is missing."""
        nodes.check(self, "manifest")

    def execute(self, stop: StopSignal) -> Outcome:
        """Run puppet until it ends."""
        return nodes.perform(self, self._apply, stop)

    def _apply(self, machine: Machine) -> Outcome:
        manifest, modules = self.parameters["manifest"], self.parameters.get("modules")
        program = ["puppet", "apply", "--detailed-exitcodes"]
        program += ["--modulepath", ":".join(modules)] if modules else []
        name = one_line(f"puppet apply {manifest}", commands.SHOWN)
        self._ended = ended = commands.run(
            machine,
            [*program, manifest],
            name,
            output=self.context.output,
            cwd=self.parameters.get("cwd"),
        )
        if ended.why is not None or ended.code not in _OUTCOMES:
            raise commands.failure(name, ended)
        return _OUTCOMES[ended.code]

    def verify(self) -> Verified:
        """Return NOT_DONE if the run ended in this attempt or is simulated, else IN_DOUBT."""
        return commands.verified(self.parameters, self._ended)
