"""Open the socket that the server listens on, and read the files of TLS."""

import errno
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.errors import ConfigError
from server.config import ServerConfig


@contextmanager
def listening(config: ServerConfig) -> Iterator[socket.socket]:
    """Listen before the model loads, so that a used address fails early. Raises OSError.

    A Unix socket replaces the file of a server that has ended, and its own file is removed at the end.
    """
    path = config.uds
    if path is None:
        kind, *_, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        dual_stack = kind == socket.AF_INET6 and socket.has_dualstack_ipv6()
        with socket.create_server(address, family=kind, dualstack_ipv6=dual_stack) as listener:
            yield listener
        return
    if _is_stale(path):
        path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        own = path.stat().st_ino
        try:
            listener.listen()
            yield listener
        finally:
            with suppress(OSError):  # another server may have replaced the file while this one drained
                if path.stat().st_ino == own:
                    path.unlink()


def _is_stale(path: Path) -> bool:
    """Return whether a file is the socket of a server that has ended."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)  # a server that does not accept has not ended
        return path.is_socket() and probe.connect_ex(str(path)) == errno.ECONNREFUSED


def tls_context(config: ServerConfig) -> ssl.SSLContext | None:
    """Read certificate and key; None without a certificate. Raises ConfigError that names the file at fault."""
    certificate, key = config.ssl_certfile, config.ssl_keyfile or config.ssl_certfile
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    fault = f"--ssl-certfile: {certificate} has no certificate in PEM format"
    try:
        context.load_verify_locations(certificate)
        fault = f"--ssl-keyfile: {key} has no private key of {certificate}, or --ssl-keyfile-password is wrong"
        # With a password, even an empty one, OpenSSL does not ask for one on the terminal.
        context.load_cert_chain(certificate, key, config.ssl_keyfile_password)
    except ssl.SSLError:
        raise ConfigError(fault) from None
    return context
