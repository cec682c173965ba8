"""A link that is slow, stalls or drops: forwards TCP from a port of its own to another one.

`python tests/elsewhere/slow_link.py PORT [BYTES_PER_SECOND DELAY_SECONDS]` prints the port that it
listens on.  Then it reads words from stdin: `stall`, `flow`, `drop`, `count`; the last one prints
the bytes that came from the other side and those that went there.  It ends with its stdin.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time

PIECE = 1 << 14


class Link:
    """Both directions of every connection have `rate` bytes a second and `delay` seconds each."""

    def __init__(self, port: int, rate: float, delay: float) -> None:
        self.port, self.rate, self.delay = port, rate, delay
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.writers: set[asyncio.StreamWriter] = set()
        self.back = self.forth = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self.port)
        for one in (writer, outer):
            self.writers.add(one)
            # Else a fast sender would fill the kernel's buffers, and seem to be done.
            sock = one.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(self.pump(reader, outer, True), self.pump(inner, writer, False))
        self.writers -= {writer, outer}

    async def pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, forth: bool
    ) -> None:
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(
            max(4, int(self.rate * self.delay / PIECE) + 4) if self.rate else 64
        )
        delivering = asyncio.ensure_future(self.deliver(on_the_way, writer, forth))
        free = time.monotonic()  # when the line has room again
        try:
            while piece := await reader.read(PIECE):
                now = time.monotonic()
                free = max(now, free) + (len(piece) / self.rate if self.rate else 0.0)
                await on_the_way.put((free + self.delay, piece))
        except OSError:
            pass
        await on_the_way.put((time.monotonic() + self.delay, b""))
        await delivering

    async def deliver(
        self,
        on_the_way: asyncio.Queue[tuple[float, bytes]],
        writer: asyncio.StreamWriter,
        forth: bool,
    ) -> None:
        try:
            while True:
                due, piece = await on_the_way.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await self.flowing.wait()
                if not piece:
                    break
                writer.write(piece)
                self.forth += len(piece) if forth else 0
                self.back += 0 if forth else len(piece)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    def obey(self, word: str) -> None:
        if word == "stall":
            self.flowing.clear()
        elif word == "flow":
            self.flowing.set()
        elif word == "drop":
            for writer in self.writers:
                writer.transport.abort()
        elif word == "count":
            print(self.back, self.forth, flush=True)


async def main(port: int, rate: float = 0.0, delay: float = 0.0) -> None:
    link, loop, over = Link(port, rate, delay), asyncio.get_running_loop(), asyncio.Event()
    server = await asyncio.start_server(link.accept, "127.0.0.1", 0, limit=PIECE)
    print(server.sockets[0].getsockname()[1], flush=True)

    def read_words() -> None:
        for word in sys.stdin:
            loop.call_soon_threadsafe(link.obey, word.strip())
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=read_words, daemon=True).start()
    await over.wait()
    os.kill(os.getpid(), signal.SIGKILL)  # connections that are open still are nobody's any more


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), *map(float, sys.argv[2:4])))
