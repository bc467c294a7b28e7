"""Keys and scopes, hosts and origins, headers, logs: each line of the threat model in docs/serve.md has a test here."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from ramify.serve import keys as keys_module
from ramify.serve.keys import KeyFileError, Keys, add_key, read_keys, remove_key
from ramify.serve.settings import Settings
from ramify.serve.supervisor import AddressError, check_settings
from shared.application import application

HOSTILE = "<script>alert(1)</script>\"'&\u2028"


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def keyed(tmp_path):
    file = tmp_path / "keys.json"
    secrets = {scope: add_key(file, f"the {scope} key", [scope]) for scope in keys_module.SCOPES}
    with application(tmp_path / "live", is_new=True, keys=file) as client:
        yield client, secrets, file


def test_another_address_than_loopback_needs_keys(tmp_path):
    with pytest.raises(AddressError, match="needs keys"):
        check_settings(Settings(model=tmp_path / "live", is_new=True, host="0.0.0.0"))
    add_key(tmp_path / "keys.json", "a", ["ask"])
    check_settings(Settings(model=tmp_path / "live", is_new=True, host="0.0.0.0", keys=tmp_path / "keys.json"))


def test_each_scope_allows_its_own_calls_only(keyed):
    client, secrets, _ = keyed
    calls = {
        "ask": lambda headers: client.get("/v1/progress", headers=headers),
        "teach": lambda headers: client.post(
            "/v1/learn", json={"examples": [{"text": "a", "labels": ["a"]}]}, headers=headers
        ),
        "administer": lambda headers: client.get("/metrics", headers=headers),
    }
    for scope, call in calls.items():
        assert call({}).status_code == 401
        assert call(bearer("wrong")).status_code == 401
        for other, secret in secrets.items():
            assert call(bearer(secret)).status_code == (200 if other == scope else 403), (scope, other)


def test_every_api_route_needs_a_key(keyed):
    client, _, _ = keyed
    document = client.get("/v1/openapi.json").json()
    public = {"/healthz", "/readyz"}
    for path, methods in document["paths"].items():
        for method in methods:
            status = client.request(method.upper(), path.replace("{project_id}", "live")).status_code
            assert (status == 401) == (path not in public), (method, path, status)


def test_keys_are_stored_hashed_and_readable_by_their_owner_only(tmp_path):
    secret = add_key(tmp_path / "keys.json", "alice", ["ask"])
    text = (tmp_path / "keys.json").read_text()
    assert secret not in text
    assert secret.rpartition("_")[2] not in text
    assert os.stat(tmp_path / "keys.json").st_mode & 0o077 == 0


def test_keys_are_compared_in_constant_time(tmp_path, monkeypatch):
    secret = add_key(tmp_path / "keys.json", "alice", ["ask"])
    compared = []
    real = keys_module.hmac.compare_digest
    monkeypatch.setattr(keys_module.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    keys = Keys(tmp_path / "keys.json")
    assert keys.find(secret).name == "alice"
    assert keys.find("ramify_000000000000_" + "A" * 43) is None  # an unknown id is compared too
    assert keys.find("") is None
    assert len(compared) == 3


def test_keys_are_rotated_without_a_restart(keyed):
    client, secrets, file = keyed
    fresh = add_key(file, "new", ["ask"])
    assert client.get("/v1/progress", headers=bearer(fresh)).status_code == 200
    remove_key(file, fresh.split("_")[1])
    assert client.get("/v1/progress", headers=bearer(fresh)).status_code == 401
    assert client.get("/v1/progress", headers=bearer(secrets["ask"])).status_code == 200
    file.write_text("{")  # damaged: the keys stay as they were
    assert client.get("/v1/progress", headers=bearer(secrets["ask"])).status_code == 200
    file.unlink()
    assert client.get("/v1/progress", headers=bearer(secrets["ask"])).status_code == 401


def test_a_bad_file_of_keys_is_refused_with_a_hint(tmp_path):
    with pytest.raises(KeyFileError, match="ramify keys add"):
        Keys(tmp_path / "none.json")
    (tmp_path / "keys.json").write_text('{"keys": [{"id": 3}]}')
    with pytest.raises(KeyFileError, match="not a file of keys"):
        read_keys(tmp_path / "keys.json")


def test_a_name_of_the_web_that_points_here_is_refused(tmp_path):
    with application(tmp_path / "live", is_new=True) as client:
        assert client.get("/v1/progress", headers={"Host": "evil.example"}).status_code == 421
        for host in ("127.0.0.1:8000", "localhost", "[::1]:8000"):
            assert client.get("/v1/progress", headers={"Host": host}).status_code == 200, host


def test_another_web_site_cannot_teach_through_a_browser(tmp_path):
    with application(tmp_path / "live", is_new=True) as client:
        body = {"examples": [{"text": "a", "labels": ["a"]}]}
        for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
            assert client.post("/v1/learn", json=body, headers={"Origin": origin}).status_code == 403, origin
        same = {"Origin": "http://127.0.0.1:8000"}
        assert client.post("/v1/learn", json=body, headers=same).status_code == 200
        plain = client.post("/v1/learn", content=json.dumps(body), headers={"Content-Type": "text/plain"})
        assert plain.status_code == 415


def test_every_answer_has_the_security_headers(tmp_path):
    with application(tmp_path / "live", is_new=True) as client:
        for path in ("/", "/page/app.js", "/v1/progress", "/nowhere", "/v1/tree"):
            headers = client.get(path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy, path
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert "server" not in headers


def test_no_label_text_or_error_is_answered_as_markup(tmp_path):
    with application(tmp_path / "live", is_new=True) as client:
        client.learn((HOSTILE, [HOSTILE]))
        answers = [
            client.post("/v1/predict", json={"texts": [HOSTILE], "fresh": True}),
            client.post("/v1/predict", json={"texts": ["a"], "labels": [HOSTILE + "?"], "fresh": True}),
            client.get("/v1/labels", params={"search": "<script>"}),
            client.get("/<script>alert(1)</script>"),
            client.get("/v1/projects/<script>"),
        ]
        for answer in answers:
            assert answer.headers["content-type"] in ("application/json", "application/problem+json")
            assert "\u2028" not in answer.text


def test_the_page_never_writes_markup_from_data():
    folder = Path(keys_module.__file__).parent / "page"
    scripts = list(folder.glob("*.js"))
    assert scripts
    for script in scripts:
        text = script.read_text()
        for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert unsafe not in text, (script.name, unsafe)
    page = (folder / "index.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert "style=" not in page
    assert "onclick" not in page


def test_logs_omit_the_texts_unless_asked(tmp_path, capsys):
    for log_texts in (False, True):
        with application(tmp_path / f"live{log_texts}", is_new=True, log_texts=log_texts) as client:
            client.learn(("a secret diagnosis", ["private label"]))
            client.post("/v1/predict", json={"texts": ["a secret diagnosis"]})
            client.post("/v1/explain", json={"text": "a secret diagnosis", "fresh": True})
            client.get("/v1/labels", params={"search": "secret"})
        said = capsys.readouterr().err
        assert all(json.loads(line)["event"] == "request" for line in said.splitlines())
        assert ("secret diagnosis" in said) == log_texts


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [("origin", "http://[", 403), ("origin", "null", 403), ("content-length", "9" * 5000, 413), ("host", "[::1", 421)],
)
def test_a_malformed_header_is_refused(tmp_path, name, value, status):
    with application(tmp_path / "live", is_new=True) as client:
        headers = {"content-type": "application/json", name: value}
        answer = client.post("/v1/predict", content=b'{"texts": ["a"]}', headers=headers)
        assert answer.status_code == status
        assert answer.json()["detail"]


def test_guessing_keys_is_limited_by_address(tmp_path):
    keys = tmp_path / "keys.json"
    add_key(keys, "alice", ["ask"])
    with application(tmp_path / "live", is_new=True, keys=keys, rate=2.0) as client:
        asked = [client.get("/v1/progress", headers={"authorization": "Bearer guess"}) for _ in range(6)]
        assert asked[0].status_code == 401
        assert asked[-1].status_code == 429


def test_many_large_bodies_at_once_are_refused(tmp_path):
    with application(tmp_path / "live", is_new=True, max_body=2000) as client:
        held = client.service.settings.max_body * 10

        async def too_large():
            for _ in range(3):
                yield b" " * 1900

        for _ in range(5):  # what is refused gives back no more than it took
            assert client.post("/v1/learn", content=too_large()).status_code == 413

        async def ask_all():
            gate = asyncio.Event()

            async def slow():
                yield b" " * 1900
                await gate.wait()
                yield b"{}"

            async def ask():
                return await client._client.post("/v1/learn", content=slow())

            asking = [asyncio.ensure_future(ask()) for _ in range(held // 1900 + 5)]
            _, waiting = await asyncio.wait(asking, timeout=1)
            gate.set()
            return len(waiting), [answer.status_code for answer in await asyncio.gather(*asking)]

        n_waiting, statuses = client.run(ask_all())
        assert n_waiting == held // 1900
        assert statuses.count(503) == 5
        assert client.post("/v1/predict", json={"texts": ["a"]}).status_code == 200  # all of it was given back


def test_a_line_of_a_bulk_stream_is_bounded(tmp_path):
    with application(tmp_path / "live", is_new=True, max_body=2000) as client:
        content = b'{"text": "a"}\n{"text": "' + b"a" * 3000 + b'"}\n'
        problem = json.loads(client.post("/v1/bulk/predict", content=content).text.splitlines()[-1])["problem"]
        assert (problem["status"], problem["where"]) == (413, "line 2")


def test_keys_are_never_logged(keyed, capsys):
    client, secrets, _ = keyed
    for secret in secrets.values():
        client.get("/v1/progress", headers=bearer(secret))
        client.get("/v1/progress", params={"key": secret}, headers=bearer(secret + "x"))
    said = capsys.readouterr().err
    assert said
    assert not any(secret.rpartition("_")[2] in said for secret in secrets.values())


def test_a_slow_bulk_body_is_cut_off(tmp_path):
    async def drops():
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    with application(tmp_path / "live", is_new=True, timeout=0.3) as client:
        assert client.post("/v1/bulk/predict", content=drops()).status_code == 408


def test_each_line_of_the_threat_model_names_tests_that_exist():
    documented = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| .*$", documented.partition("## Threat model")[2], re.MULTILINE)[1:]
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert len(lines) > 15
    for line in lines:
        named = re.findall(r"`(test_\w+)`", line)
        assert named, line
        assert [name for name in named if f"def {name}(" not in tests] == []
