"""TLS handshakes within this process: what OpenSSL says of a certificate and a host."""

import ssl
import tempfile
from pathlib import Path

from earshot.certificates.authority import IssuedCertificate


def server_context(issued: IssuedCertificate) -> ssl.SSLContext:
    """A server's context with the certificate and key of ``issued``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store.pem")
        store.write_text(issued.key + issued.certificate)
        context.load_cert_chain(store)
    return context


def client_context(authority: IssuedCertificate) -> ssl.SSLContext:
    """A client's context that trusts ``authority`` alone, and no common name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.hostname_checks_common_name = False
    context.load_verify_locations(cadata=authority.certificate)
    return context


def accepted(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> bool:
    """Whether a client that connects to ``host`` accepts the server's certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        asking = client.wrap_bio(to_client, to_server, server_hostname=host)
    except ValueError:  # a host that nobody can ask for: with an empty label, say
        return False
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (asking, answering, asking):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError:
            return False
    return True
