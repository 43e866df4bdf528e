"""TLS, Unix sockets and files of API keys: before the model is loaded, and after."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from engine.errors import ConfigError
from server.config import ServerConfig
from server.edge.listen import listening, tls_context
from server.loading import answer_while_loading
from tests.support.fake import FakeEngine
from tests.support.files import program
from tests.support.harness import CHAT, CHAT_PATH, Live, ask, client_options, url_of

Start = Callable[..., Live]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two certificates of this machine, `one` and `two`, and the key of `one` with the password "secret"."""
    folder, openssl = tmp_path_factory.mktemp("certificates"), program("openssl", "openssl")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    for name in ("one", "two"):
        files = ("-keyout", f"{name}.key", "-out", f"{name}.pem")
        names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
        command = (openssl, "req", "-x509", "-nodes", "-days", "2", *curve, *files, *names)
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    locked = (openssl, "ec", "-aes256", "-passout", "pass:secret", "-in", "one.key", "-out", "locked.key")
    subprocess.run(locked, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(params=["tcp", "tls", "unix"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> ServerConfig:
    if request.param == "unix":
        return ServerConfig(uds=tmp_path / "http.sock")
    if request.param == "tcp":
        return ServerConfig(port=0)
    folder: Path = request.getfixturevalue("certificates")
    return ServerConfig(port=0, ssl_certfile=folder / "one.pem", ssl_keyfile=folder / "one.key")


def test_a_loading_server_answers_on_every_kind_of_address(config: ServerConfig) -> None:
    with listening(config) as listener, answer_while_loading(listener, tls_context(config)):
        url = url_of(config, 0 if config.uds else listener.getsockname()[1])
        with httpx.Client(**client_options(config, url)) as client:
            assert client.get("/live").status_code == 200
            assert client.post(CHAT_PATH, json=CHAT).json()["error"]["code"] == "loading"


def test_a_loaded_server_answers_on_every_kind_of_address(live: Start, config: ServerConfig) -> None:
    """Also clients that offer an upgrade, whose connections get another protocol."""
    settings = {name: getattr(config, name) for name in ("uds", "ssl_certfile", "ssl_keyfile")}
    server = live(FakeEngine(("a", "b")), **settings)
    for headers in ({}, {"connection": "upgrade, http2-settings", "upgrade": "h2c", "http2-settings": "x"}):
        reply = server.client.post(CHAT_PATH, json=CHAT, headers=headers)
        assert reply.json()["choices"][0]["message"]["content"] == "ab"


def test_a_client_that_leaves_cancels_on_every_kind_of_address(live: Start, config: ServerConfig) -> None:
    engine = FakeEngine(("x",) * 10, gated=True)
    settings = {name: getattr(config, name) for name in ("uds", "ssl_certfile", "ssl_keyfile")}
    server = live(engine, **settings)
    engine.release()  # a stream begins with its first token
    with server.client.stream("POST", CHAT_PATH, json=CHAT | {"stream": True}) as reply:
        assert next(reply.iter_lines()).startswith("data: ")
    assert engine.left.wait(10)


def test_clients_that_speak_no_tls_disturb_nobody(certificates: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = ServerConfig(port=0, ssl_certfile=certificates / "one.pem", ssl_keyfile=certificates / "one.key")
    with listening(config) as listener, answer_while_loading(listener, tls_context(config)):
        port = listener.getsockname()[1]
        with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as plain:
            plain.sendall(b"GET /live HTTP/1.1\r\nHost: x\r\n\r\n")
            with suppress(ConnectionResetError):
                assert not plain.recv(1 << 16).startswith(b"HTTP")
        with httpx.Client(**client_options(config, url_of(config, port))) as client:
            assert client.get("/live").status_code == 200
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("certificate", "key", "password", "names"),
    [
        ("one.key", "one.key", "", "one.key"),
        ("empty", "one.key", "", "empty"),
        ("one.pem", "two.key", "", "two.key"),
        ("one.pem", "empty", "", "empty"),
        ("one.pem", "one.pem", "", "one.pem"),
        ("one.pem", "locked.key", "", "locked.key"),
        ("one.pem", "locked.key", "wrong", "locked.key"),
    ],
)
def test_files_that_do_not_fit_are_refused_by_name(
    certificates: Path, certificate: str, key: str, password: str, names: str
) -> None:
    """A password is never asked for on the terminal."""
    (certificates / "empty").touch()
    config = ServerConfig(
        ssl_certfile=certificates / certificate, ssl_keyfile=certificates / key, ssl_keyfile_password=password
    )
    with pytest.raises(ConfigError, match=f": .*/{names} has no ") as error:
        tls_context(config)
    assert "\n" not in str(error.value)


def test_the_key_may_be_encrypted_or_in_the_certificates_file(certificates: Path) -> None:
    both = certificates / "both.pem"
    both.write_bytes((certificates / "one.pem").read_bytes() + (certificates / "one.key").read_bytes())
    assert tls_context(ServerConfig(ssl_certfile=both)) is not None
    locked = ServerConfig(ssl_certfile=certificates / "one.pem", ssl_keyfile=certificates / "locked.key")
    assert tls_context(replace(locked, ssl_keyfile_password="secret")) is not None


@pytest.mark.parametrize("settings", [{"ssl_keyfile": Path("key")}, {"ssl_keyfile_password": "x"}])
def test_a_key_without_a_certificate_is_refused(settings: dict[str, Path | str]) -> None:
    with pytest.raises(ConfigError, match="require --ssl-certfile"):
        ServerConfig(**settings)  # type: ignore[arg-type]


def test_the_socket_of_a_server_that_has_ended_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    with closing(socket.socket(socket.AF_UNIX)) as ended:
        ended.bind(str(path))
    with listening(ServerConfig(uds=path)):
        assert stat.S_ISSOCK(path.stat().st_mode)
    assert not path.exists()


def test_a_socket_in_use_and_another_file_are_left_alone(tmp_path: Path) -> None:
    path, file = tmp_path / "http.sock", tmp_path / "file"
    file.write_text("kept")
    with listening(ServerConfig(uds=path)) as listener:
        before = path.stat().st_ino
        listener.setblocking(False)
        for taken in (path, path, file):  # also while a connection waits to be accepted
            with pytest.raises(OSError, match="in use"), listening(ServerConfig(uds=taken)):
                pass
        assert (path.stat().st_ino, file.read_text()) == (before, "kept")


def test_a_draining_server_does_not_remove_the_socket_of_the_next_one(tmp_path: Path) -> None:
    path, kept = tmp_path / "http.sock", tmp_path / "kept"
    with listening(ServerConfig(uds=path)):
        path.rename(kept)  # so that its inode is not used again
        path.touch()
    assert path.exists()


KEYS = "\ufeff# of the front end\n  one  \n\n\t# of a gateway\ntwo\r\none\n"


def test_keys_of_a_file_and_of_flags_are_all_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(KEYS, "utf-8")
    config = read(monkeypatch, api_key_file=str(file), api_key="three")
    assert config.api_key == ("three", "one", "two")
    for key, status in {"one": 200, "two": 200, "three": 200, "# of the front end": 401, "four": 401}.items():
        headers = {"authorization": f"Bearer {key}"}
        assert ask(FakeEngine(), "GET", "/v1/models", config=config, headers=headers).status_code == status
    assert read(monkeypatch, api_key_file=str(file), metrics_auth="true").metrics_auth


def read(monkeypatch: pytest.MonkeyPatch, **environ: str) -> ServerConfig:
    """The settings of a server with these variables."""
    import argparse

    from server.settings import Settings

    variables = {f"KNAPSERVE_{name.upper()}": value for name, value in environ.items()}
    return Settings.read((ServerConfig,), argparse.Namespace(), variables).build(ServerConfig)


@pytest.mark.parametrize(
    "content", [b"", b"# none\n\n", b"one # of the front end\n", b"\xff\xfe\x00", "schlüssel".encode()]
)
def test_a_file_without_usable_keys_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    """A server whose keys were lost would be open to all."""
    file = tmp_path / "keys"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"KNAPSERVE_API_KEY_FILE: {file} must have one key a line"):
        read(monkeypatch, api_key_file=str(file))
    with pytest.raises(ConfigError, match="there is no file"):
        read(monkeypatch, api_key_file=f"{file}{os.sep}x")
