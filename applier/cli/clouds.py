# SPDX-License-Identifier: Apache-2.0
"""Verbs about clouds: ``facts``, ``drain`` and ``undrain`` of hosts, and the simulated cloud."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from applier.cli.arguments import REASON, YES, Add, argument, format_of, one_of
from applier.cli.exit_codes import REFUSED
from applier.cli.verb import Verb, rendered, write_text
from applier.run.plan_cloud import SIMULATED
from applier.run.this_process import user
from planner.errors import InvalidInput, Mistake

if TYPE_CHECKING:
    from rich.table import Table


class Facts(Verb):
    """Write what the cloud holds now: instances, hosts, services, flavors

    This is the field 'facts' of a document, for planners that need to know where instances are.
    """

    EXAMPLES = ("facts", "facts -f json", "facts --out facts.yaml")
    ARGUMENTS = (
        argument("-f --format", "default: yaml", choices=["yaml", "json"], default="yaml"),
        argument("--out FILE", "write them to a file"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        text = rendered(self.session.facts(), parsed_args.format)
        self.write(text, parsed_args.out)
        return 0


class _HostVerb(Verb):
    """A verb that writes a document about hosts."""

    ARGUMENTS: ClassVar[tuple[Add, ...]] = (
        argument("HOST", "name of a compute host", dest="hosts", nargs="*"),
        argument(
            "--label KEY=VALUE",
            "all hosts with this label, such as rack=r1; may be repeated: with all of them",
            action="append",
            default=[],
        ),
        one_of(
            argument("--out FILE", "write the document to a file"),
            argument("--apply", "make the plan, show it, ask, and run it here"),
        ),
        YES,
    )

    def hosts(self, parsed_args: argparse.Namespace, facts: Mapping[str, Any]) -> list[str]:
        """Return the hosts that are named, and those with the labels."""
        from planner.drain import with_labels

        labels = dict(text.partition("=")[::2] for text in parsed_args.label)
        if wrong := [text for text in parsed_args.label if not all(text.partition("="))]:
            raise InvalidInput(
                Mistake("KEY=VALUE is expected, such as rack=r1", place=f"--label {text}")
                for text in wrong
            )
        if not (parsed_args.hosts or labels):
            text = "a HOST is needed, or --label KEY=VALUE"
            raise InvalidInput([Mistake(text, place=self.cmd_name)])
        return [*parsed_args.hosts, *(with_labels(facts, labels) if labels else ())]

    def finish(self, document: Mapping[str, Any], args: argparse.Namespace) -> int:
        """Write the document to standard output or to a file, or run its plan; return the code."""
        if args.apply:
            return self._run(document, args)
        text = rendered(document, "yaml")
        if args.out is not None:
            write_text(args.out, text)
            self.say(f"Next: actionplan create {args.out}")
        else:
            self.app.stdout.write(text)
        return 0

    def _run(self, document: Mapping[str, Any], args: argparse.Namespace) -> int:
        from applier.cli import apply
        from applier.cli.terminal import lasting
        from applier.operations.creation import SetOptions, planned
        from planner.documents import Document

        if not apply.may_ask(self, args):
            return REFUSED
        self.app.stdout = lasting(self.app.stdout)
        settings = SetOptions()
        plan = planned(self.session, Document(document), settings)
        args = argparse.Namespace(yes=args.yes, all=False, accept_drift=False, reason=None)
        return apply.run_shown(self, plan, settings, args, is_new=True)


class Drain(_HostVerb):
    """Write a document that moves all instances off hosts

    It disables the hosts and moves each instance to a host that has room for it, live if it is
    ACTIVE, cold if it is SHUTOFF. Nothing is changed: 'create' makes a plan of the document. With
    --apply the plan is made, shown and, when you agree, run. If an instance has to stay, the reason
    is written to standard error, and the exit code is 1.
    """

    EXAMPLES = (
        "drain compute-1 | actionplan create -",
        "drain compute-1 compute-2 --power-off --reason 'new power supplies' --out drain.yaml",
        "drain --label rack=r1 --out rack.yaml",
        "drain compute-1 --apply",
        "drain compute-1 --scheduler",
    )
    ARGUMENTS = (
        *_HostVerb.ARGUMENTS,
        REASON,
        argument("--power-off", "switch the hosts off when they are empty"),
        argument("--scheduler", "let the cloud choose a host for instances that fit nowhere"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from planner import drain

        facts = self.session.facts()
        document, stays = drain.drain(
            facts,
            self.hosts(parsed_args, facts),
            reason=parsed_args.reason or f"drained by {user()}",
            power_off=parsed_args.power_off,
            scheduler=parsed_args.scheduler,
        )
        for uuid, why in stays.items():
            instance = facts["instances"][uuid]
            self.note(f"{instance['name']} ({uuid}) stays on {instance['host']}: {why}")
        return self.finish(document, parsed_args) or (REFUSED if stays else 0)


class Undrain(_HostVerb):
    """Write a document that takes hosts back into use

    It powers them on if they are off, and enables them. No instance is moved back. With --apply the
    plan is made, shown and, when you agree, run.
    """

    EXAMPLES = ("undrain compute-1 --apply", "undrain compute-1 --out back.yaml")

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from planner import drain

        facts = self.session.facts()
        return self.finish(drain.undrain(facts, self.hosts(parsed_args, facts)), parsed_args)


class SimulatorShow(Verb):
    """Show the simulated cloud: hosts, instances, volumes, services"""

    EXAMPLES = ("simulator show", "simulator show -f json")
    ARGUMENTS = (format_of(),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        snapshot = self.session.simulated_cloud().snapshot()
        _tell_other(self)
        if parsed_args.format != "table":
            self.app.stdout.write(rendered(snapshot, parsed_args.format))
            return 0
        from applier.cli.reporters.plan_table import console, put

        out = console(self.app.stdout)
        for number, table in enumerate(_tables(snapshot)):
            if number:
                self.say()
            put(out, table)
        return 0


class SimulatorReset(Verb):
    """Reset the simulated cloud

    To the small cloud that is part of the product, or to the cloud in a file of the same format.
    """

    EXAMPLES = ("simulator reset", "simulator reset --from my-cloud.yaml")
    ARGUMENTS = (argument("--from FILE", "cloud to start with", dest="source"),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier import configuration
        from applier.clouds.simulated import SimulatedCloud

        path = configuration.simulator_path(self.session.conf)
        SimulatedCloud.reset(path, parsed_args.source)
        self.say(f"The simulated cloud in {path} is as new.")
        _tell_other(self)
        return 0


def _tell_other(verb: Verb) -> None:
    """Write a note to standard error if the configured cloud is not the simulated one."""
    configured = verb.session.conf.actionplan.cloud
    if configured != SIMULATED:
        verb.note(f"Note: plans run on another cloud: [actionplan] cloud is {configured}.")


def _tables(snapshot: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the table of hosts, and those of instances, volumes and faults, if they have rows."""
    from applier.cli.reporters.plan_table import table_with

    instances, volumes = snapshot["instances"].values(), snapshot["volumes"].items()
    on: dict[str | None, list[str]] = {}
    for instance in instances:
        on.setdefault(instance["host"], []).append(instance["name"])
    services = snapshot["services"]
    hosts = table_with(
        ("host", "power", "service", "instances", "vcpus free", "ram free"),
        (
            (
                name,
                host["power"],
                services.get(name, {}).get("status", "-"),
                " ".join(on.get(name, [])) or "-",
                f"{host['free']['vcpus']} of {host['vcpus']}",
                f"{host['free']['ram_mb']} of {host['ram_mb']} MB",
            )
            for name, host in snapshot["hosts"].items()
        ),
    )
    for row, host in zip(hosts.rows, snapshot["hosts"].values(), strict=True):
        row.style = "" if host["power"] == "on" else "yellow"
    yield hosts
    if instances:
        yield table_with(
            ("instance", "uuid", "host", "flavor", "status"),
            (
                (at["name"], uuid, at["host"] or "-", at["flavor"], at["status"])
                for uuid, at in snapshot["instances"].items()
            ),
        )
    if volumes:
        yield table_with(
            ("volume", "uuid", "pool", "type", "size"),
            (
                (v["name"], uuid, v["pool"], v["type"] or "-", f"{v['size_gb']} GB")
                for uuid, v in volumes
            ),
        )
    if snapshot["faults"]:
        yield table_with(
            ("fault", "operation", "target", "times", "message"), map(_fault, snapshot["faults"])
        )


def _fault(fault: Mapping[str, Any]) -> tuple[str, ...]:
    times = "always" if fault.get("times") is None else str(fault["times"])
    return fault["kind"], fault["operation"], fault["target"], times, fault.get("message") or ""
