"""Connections of slow, greedy or hostile clients, over real sockets: each is bounded, and others are answered."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from shared.serving import served

TIMEOUT = 1.0
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("connections") / "live"
    with served(folder, "--timeout", str(TIMEOUT), "--max-connections", "20") as service:
        assert service.learn([("kidney stone", ["N20"]), ("dry cough", ["R05"])]).status_code == 200
        service.wait_for_version(2)
        yield service


@pytest.fixture
def connect(service):
    opened = []

    def connection():
        opened.append(socket.create_connection(address_of(service), timeout=60))
        return opened[-1]

    yield connection
    for one in opened:
        one.close()


def address_of(service):
    host, port = service.address.rstrip("/").removeprefix("http://").split(":")
    return host, int(port)


def send_all(connection, parts, pause=0.0):
    for part in parts:
        connection.sendall(part)
        time.sleep(pause)


def until_closed(connection):
    """What comes before the service closes the connection."""
    received = b""
    while part := connection.recv(65536):
        received += part
    return received


def problem_of(answer):
    head, _, body = answer.rpartition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    assert b"content-security-policy" in head
    return int(head.split()[1]), json.loads(body)["detail"]


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
def test_a_connection_without_a_whole_request_is_closed_in_time(connect, sent):
    connection = connect()
    connection.sendall(sent)
    status, detail = problem_of(until_closed(connection))
    assert (status, detail) == (408, "no whole request came within 1 s: send it again")


def test_a_head_that_comes_a_byte_at_a_time_is_cut_off(connect):
    connection, began = connect(), time.monotonic()
    head = HEALTH[:-2] + b"X-Long: " + b"a" * 10_000
    with pytest.raises(OSError):
        send_all(connection, (head[place : place + 1] for place in range(len(head))), pause=0.05)
    assert time.monotonic() - began < 30


def test_an_endless_header_is_refused(connect):
    connection = connect()
    connection.sendall(HEALTH[:-2] + b"X-Long: ")
    with pytest.raises(OSError):
        send_all(connection, (b"a" * 1_000_000 for _ in range(100)))


def test_too_many_headers_are_refused_with_the_limit(connect):
    connection = connect()
    connection.sendall(HEALTH[:-2] + b"X-First: 1\r\n")
    time.sleep(0.2)
    connection.sendall(b"X-Some: thing\r\n" * 5000)
    status, detail = problem_of(until_closed(connection))
    assert (status, detail) == (431, "the headers of a request have at most 65,536 bytes: send fewer")


def test_what_is_no_http_gets_a_problem(connect):
    connection = connect()
    connection.sendall(
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n"
    )  # TLS, as a browser with https:// sends
    assert problem_of(until_closed(connection))[0] == 400


def test_a_body_that_is_no_chunk_gets_a_problem(connect):
    connection = connect()
    connection.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    time.sleep(0.2)  # the application waits for the body
    connection.sendall(b"no size\r\n")
    assert problem_of(until_closed(connection))[0] == 400


def test_head_is_get_without_a_body(connect):
    for path, status in (("/healthz", 200), ("/", 200), ("/v1/progress", 200), ("/nowhere", 404), ("/v1/learn", 405)):
        connection = connect()
        connection.sendall(f"HEAD {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        head, _, body = until_closed(connection).partition(b"\r\n\r\n")
        assert (int(head.split()[1]), body) == (status, b""), path


def test_requests_sent_ahead_are_answered_in_order(connect):
    connection = connect()
    paths = ["/healthz", "/v1/progress", "/nowhere", "/readyz"] * 25
    connection.sendall(b"".join(HEALTH.replace(b"/healthz", path.encode()) for path in paths))
    answers = connection.makefile("rb")
    for path in paths:
        status = int(answers.readline().split()[1])
        assert status == (404 if path == "/nowhere" else 200), path
        size = 0
        while (line := answers.readline().strip()) != b"":
            size = int(line.split(b":")[1]) if line.startswith(b"content-length:") else size
        answers.read(size)


def test_http_1_0_is_answered_and_closed(connect):
    connection = connect()
    connection.sendall(HEALTH.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert b'{"status":"ok"}' in until_closed(connection)


def test_requests_sent_far_ahead_do_not_fill_the_memory(service, connect):
    worker = int(Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children").read_text().split()[0])
    connection = connect()
    before, ends = resident(worker), threading.Event()

    def read():
        with suppress(OSError):  # the service closes it
            while not ends.is_set() and connection.recv(2**20):
                pass

    threading.Thread(target=read, daemon=True).start()
    connection.settimeout(1)
    deadline = time.monotonic() + 3
    with suppress(OSError):  # it reads no faster than it answers
        while time.monotonic() < deadline:
            connection.sendall(HEALTH * 500)
    assert resident(worker) - before < 30e6
    ends.set()
    connection.close()
    assert service.client.get("/healthz").status_code == 200


def test_requests_sent_ahead_are_all_answered_however_long_earlier_ones_take(connect):
    connection, count = connect(), 3000
    ahead = b"HEAD /v1/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * count
    threading.Thread(target=connection.sendall, args=(ahead,), daemon=True).start()
    n_answers, rest = 0, b""
    while n_answers < count:
        part = connection.recv(2**20)
        assert part, f"the service closed the connection after {n_answers} answers"
        rest += part
        n_answers, rest = n_answers + rest.count(b"HTTP/1.1 200"), rest[-11:]


def test_an_unread_answer_holds_nothing_for_long(tmp_path):
    body = b'{"text": "kidney stone"}\n' * 100_000
    head = b"POST /v1/bulk/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    with served(tmp_path / "live", "--timeout", str(TIMEOUT), "--max-requests", "1") as service:
        service.learn([("kidney stone", ["N20"])])
        service.wait_for_version(1)
        with socket.create_connection(address_of(service), timeout=60) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.sendall(head + body)
            # Another request before the answer begins could take the only place, and this one would be refused.
            assert reader.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"  # begun, and left unread
            deadline = time.monotonic() + 60
            while (status := service.client.get("/v1/progress").status_code) != 200:
                assert status == 503
                assert time.monotonic() < deadline, "an unread answer is kept"
                time.sleep(0.1)
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)  # what the kernel still holds comes at once
            assert not until_closed(reader).endswith(b"0\r\n\r\n"), "the answer was sent whole: nothing was held"


def test_more_connections_than_allowed_are_refused_and_silent_ones_make_room(service, connect):
    service.client.close()
    service.client = type(service.client)(base_url=service.address, timeout=60)
    silent = [connect() for _ in range(30)]
    assert problem_of(until_closed(silent[-1]))[0] == 503
    deadline = time.monotonic() + 60
    while True:
        answer = service.client.get("/healthz")
        if answer.status_code == 200:
            break
        assert (answer.status_code, answer.json()["retry_after"]) == (503, 1)
        assert time.monotonic() < deadline
        time.sleep(0.1)


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
