"""A stand-in for `python`: the program runs in a fork of the server of `warm_python`, with this process's streams.

Started as `python warm_client.py SOCKET -c CODE [argument …]` or `… SOCKET SCRIPT [argument …]`. Needs only the
standard library, so that it starts in a few milliseconds. Forwards signals and ends as the program ends.
"""

import json
import os
import signal
import socket
import sys


def main():
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(sys.argv[1])
        request = json.dumps({"argv": sys.argv[2:], "cwd": os.getcwd(), "environment": dict(os.environ)}).encode()
        socket.send_fds(server, [len(request).to_bytes(8, "little")], [0, 1, 2])
        server.sendall(request)
        answers = server.makefile("r")
        child = int(answers.readline())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.kill(child, number))
        code = int(answers.readline())
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    # The streams are the program's: closing them again here could only fail.
    os._exit(code)


main()
