"""Ctrl-C at a moment that does not depend on how busy the machine is."""

from __future__ import annotations

import os
import signal
import threading
import time


def interrupt_after(seconds):
    """Sends this process SIGINT once it has used the processor for so many more seconds.

    The list that is returned then holds `time.process_time()` of that moment.
    """
    start, sent = time.process_time(), []

    def watch():
        while time.process_time() - start < seconds:
            time.sleep(0.005)
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
    return sent
