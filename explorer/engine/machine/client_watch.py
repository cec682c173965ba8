"""An engine on another machine ends with its client, though nothing tells it that the line is lost.

Where a network only falls silent, a process behind ssh would wait for hours.
"""

from __future__ import annotations

import os
import threading
import time

from explorer.trace.wire.messages import AnyRequest, ClientAlive


class ClientWatch:
    """Ends this process once its client has been silent for as long as it allowed."""

    def __init__(self) -> None:
        self._heard = True
        self._seconds = 0.0  # 0: the client never said that it would be heard
        self._thread = threading.Thread(target=self._look, name="client", daemon=True)

    def heard(self, request: AnyRequest) -> None:
        """Something came; the first ClientAlive begins the watch."""
        self._heard = True
        if isinstance(request, ClientAlive) and request.seconds > 0:
            self._seconds = request.seconds
            if not self._thread.is_alive():
                self._thread.start()

    def _look(self) -> None:
        """Counted in looks, not by the clock: this machine may have been asleep itself."""
        silent = 0.0
        while silent < self._seconds:
            every = min(1.0, self._seconds / 4)
            time.sleep(every)
            silent, self._heard = 0.0 if self._heard else silent + every, False
        os._exit(0)
