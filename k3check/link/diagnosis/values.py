"""Values that every text of the table may name, whatever row it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.link.wire.urls import OTHER_REGION

if TYPE_CHECKING:
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.wire.redact import Redactor


def values_of(seen: Observation, redactor: Redactor) -> dict[str, Any]:
    """Safe values of an observation, by the placeholder's name."""
    base, exchange, request = seen.base, seen.exchange, seen.request
    route = seen.wire
    failure = exchange.failure
    return {
        "status": exchange.status,
        "url": redactor.excerpt(exchange.call.url),
        "base_url": redactor.excerpt(base.shown),
        "corrected_base_url": redactor.excerpt(base.corrected),
        "corrected_url": redactor.excerpt(base.corrected_url(route)),
        "sdk_base_url": redactor.excerpt(base.sdk_base),
        "other_region": OTHER_REGION.get(base.host, ""),
        "host": base.host,
        "port": base.port,
        "peer": failure.peer if failure else f"{base.host}:{base.port}",
        "model": redactor.excerpt(request.model or ""),
        "family": seen.family,
        "message": redactor.excerpt(seen.error.message) if exchange.status else "",
        "content_type": redactor.excerpt(exchange.media_type, 60) or "none",
        "proxy": seen.proxy.shown,
        "proxy_source": seen.proxy.source,
        "timeout_seconds": _short(request.timeout_s),
        "seconds": _short(exchange.times.get("total", 0.0)),
        "received_bytes": len(exchange.body),
        "reason": redactor.excerpt(failure.text) if failure else "",
    }


def _short(seconds: float) -> str:
    return f"{seconds:.3g}"
