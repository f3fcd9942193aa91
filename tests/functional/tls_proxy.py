# SPDX-License-Identifier: Apache-2.0
"""Passes what comes by TLS on to a server: ``tls_proxy.py CERTIFICATE KEY HOST PORT``.

It prints the port at which it listens on 127.0.0.1, and goes on until it is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys


async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write what comes until nothing more does."""
    with contextlib.suppress(OSError), contextlib.closing(writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


async def main() -> None:
    """Listen, and serve each connection."""
    certificate, key, host, port = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_there, there = await asyncio.open_connection(host, int(port))
        await asyncio.gather(passed_on(reader, there), passed_on(from_there, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
