"""Certificates of a private authority, right and wrong ones, as PEM files with their keys."""

from __future__ import annotations

import datetime as dt
import ipaddress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("good", "other-name", "expired", "self-signed", "client")


def write(folder: Path) -> Path:
    """Write ``KIND.pem`` for every kind, and the authority's own certificate.

    Returns:
        The authority's file.
    """
    import trustme

    ca = trustme.CA()
    day, now = dt.timedelta(days=1), dt.datetime.now(dt.UTC)
    valid = {"not_before": now - day, "not_after": now + 60 * day}
    wanted: dict[str, tuple[str, dict[str, Any]]] = {
        "good": ("127.0.0.1", valid),
        "other-name": ("gateway.test", valid),
        "expired": ("127.0.0.1", {"not_before": now - 30 * day, "not_after": now - day}),
        "client": ("127.0.0.1", valid),
    }
    for kind, (name, times) in wanted.items():
        ca.issue_cert(name, **times).private_key_and_cert_chain_pem.write_to_path(
            str(folder / f"{kind}.pem")
        )
    (folder / "self-signed.pem").write_bytes(self_signed())
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    return folder / "ca.pem"


def self_signed() -> bytes:
    """A certificate that nobody but itself has signed; trustme makes none."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gateway")])
    now = dt.datetime.now(dt.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=60))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + made.public_bytes(serialization.Encoding.PEM)
