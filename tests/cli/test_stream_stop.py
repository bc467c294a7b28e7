"""What `ramify stream` was asked to stop in the middle of is dropped, also if its input ends at the same moment."""

from __future__ import annotations

import gzip
import os
import signal
import threading

import pytest

import ramify
from ramify.cli.main import run
from ramify.cli.stream import input as stream_input

XMC = b"".join(b"%d,%d 0:0.5 %d:1\n" % (row % 5, row % 7, row % 11) for row in range(40))
CSV = b"text,labels\n" + b"".join(b"word%d here,%d\n" % (row % 11, row % 5) for row in range(40))
# Each is cut where its last row could be read, wrongly or with an error.
CUT = {
    "xmc, an error": ("xmc", XMC + b"3,4 0:0.5 1:"),
    "xmc, a wrong value": ("xmc", XMC + b"3,4 0:0.5 1:0.12"),
    "csv, a wrong label": ("csv", CSV + b"word1 here,1"),
    "csv, an open quote": ("csv", CSV + b'"word1 here'),
    "gzip": ("xmc", gzip.compress(XMC + b"3,4 0:0.5 1:0.12")[:-9]),
    "utf-16": ("csv", (CSV.decode() + "word1 here,1").encode("utf-16")[:-1]),
}


@pytest.fixture
def ends_as_a_signal_comes(monkeypatch):
    """The signal comes just after the end of the input was read: nothing was there to see before."""
    read = os.read

    def read_and_stop(descriptor, size):
        block = read(descriptor, size)
        if not block:
            os.kill(os.getpid(), signal.SIGTERM)
        return block

    monkeypatch.setattr(os, "read", read_and_stop)


@pytest.mark.parametrize("cut", CUT)
@pytest.mark.usefixtures("ends_as_a_signal_comes")
def test_a_row_cut_off_by_a_signal_is_not_learned(tmp_path, capsys, cut):
    format, content = CUT[cut]
    (tmp_path / "rows").write_bytes(content)
    model = tmp_path / "model"
    code = run(["stream", str(tmp_path / "rows"), "--model", str(model), "--format", format, "--threads", "1"])
    said = capsys.readouterr()
    assert code == 143, said.err
    assert "Stopped by SIGTERM" in said.out
    assert ramify.load(model).n_examples_ == (40 if cut != "gzip" else pytest.approx(40, abs=3))


def test_the_end_of_a_pipe_may_come_shortly_before_the_signal_that_cut_it(monkeypatch):
    monkeypatch.setattr(stream_input, "_SECONDS_FOR_A_SIGNAL", 60)
    reader, writer = os.pipe()
    os.write(writer, b"3,4 0:0.5 1:0.12")
    os.close(writer)
    with stream_input.StopSignal() as stop:
        blocks = stream_input.blocks_of("stdin", reader, stop)
        assert next(blocks) == b"3,4 0:0.5 1:0.12"
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
        with pytest.raises(stream_input.Stopped):
            next(blocks)
    os.close(reader)
