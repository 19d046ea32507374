"""Which certificates are trusted."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from k3check.link.request import LinkRequest
    from k3check.link.wire.proxies import ProxyChoice


def tls_context(request: LinkRequest, scheme: str, proxy: ProxyChoice) -> ssl.SSLContext:
    """The certificates to trust: certifi's, or what SSL_CERT_FILE / SSL_CERT_DIR / ca_file name.

    Raises:
        OSError: a named file or folder cannot be read, or holds no certificate.
    """
    if scheme != "https" and proxy.scheme != "https":
        # Nothing is encrypted: a context that trusts nobody costs nothing to make.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    env = request.env
    if file := env.get("SSL_CERT_FILE"):
        context = ssl.create_default_context(cafile=file)
    elif folder := env.get("SSL_CERT_DIR"):
        context = ssl.create_default_context(capath=folder)
    else:
        import certifi

        context = ssl.create_default_context(cafile=certifi.where())
    if request.ca_file:
        context.load_verify_locations(cafile=request.ca_file)
    return context
