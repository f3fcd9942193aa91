# SPDX-License-Identifier: Apache-2.0
"""Servers of the lab's Nova, by a Python that has openstacksdk; prints what there is as JSON.

``boot HOST COUNT`` boots servers on a host, ``mark HOST KEY=VALUE...`` sets the metadata of those
there (``lab_hypervisor.py``), ``reset`` removes all and enables all hosts, ``show`` changes none.
"""

from __future__ import annotations

import json
import sys

import openstack
from openstack.utils import iterate_timeout


def boot(compute, image, host, count):
    """Boot servers one after another."""
    for number in range(int(count)):
        server = compute.create_server(
            name=f"{host}-{number}",
            flavor_id="1",
            image_id=image,
            networks="none",
            availability_zone=f"nova:{host}",
        )
        compute.wait_for_server(server, interval=0.2)


def mark(compute, host, *pairs):
    """Set metadata."""
    metadata = dict(pair.split("=") for pair in pairs)
    for server in compute.servers(all_projects=True):
        if server.compute_host == host:
            compute.set_server_metadata(server, **metadata)


def reset(compute):
    """Remove all servers, enable all hosts.

    ``wait_for_delete`` is content with the status DELETED, and Nova still lists the server then.
    """
    for server in compute.servers(all_projects=True):
        compute.delete_server(server, force=True)
    for _ in iterate_timeout(240, "servers are still listed", wait=0.2):
        if not list(compute.servers(all_projects=True)):
            break
    for service in compute.services(binary="nova-compute"):
        compute.enable_service(service)


def show(compute):
    """Return servers with their hosts, moves, and hosts with their states."""
    return {
        "servers": [
            {"uuid": server.id, "name": server.name, "status": server.status}
            | {"host": server.compute_host, "state": server.vm_state}
            for server in compute.servers(all_projects=True)
        ],
        "moves": [
            {"server": move.server_id, "type": move.migration_type, "status": move.status}
            | {"source": move.source_compute, "destination": move.dest_compute}
            for move in compute.migrations()
        ],
        "hosts": {
            service.host: {"status": service.status, "reason": service.disabled_reason}
            for service in compute.services(binary="nova-compute")
        },
    }


def main(verb, *words):
    """Do what a verb says, and print what there is then."""
    connection = openstack.connect()
    compute = connection.compute
    if verb == "boot":
        boot(compute, next(connection.image.images()).id, *words)
    elif verb in ("mark", "reset"):
        {"mark": mark, "reset": reset}[verb](compute, *words)
    print(json.dumps(show(compute)))


if __name__ == "__main__":
    main(*sys.argv[1:])
