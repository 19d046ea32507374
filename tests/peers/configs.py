"""The configuration files of the peers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MOCKS = {
    "mock": "This is a mock answer.",
    "mock-rate": "litellm.RateLimitError",
    "mock-error": "litellm.InternalServerError",
    "mock-window": "litellm.ContextWindowExceededError",
}


def litellm(master_key: str, good: str, good_key: str, faulty_port: int, dead_port: int) -> str:
    """LiteLLM's configuration, written as JSON, which is YAML too.

    Args:
        master_key: the key that clients need.
        good, good_key: base URL and key of a service that works, as ``kimi-k3``.
        faulty_port: of the failing service; its models are named after the failures.
        dead_port: nothing listens there: the model ``dead``.
    """

    def model(name: str, base: str, key: str = "upstream-key", **more: Any) -> dict[str, Any]:
        params = {"model": "openai/kimi-k3", "api_base": base, "api_key": key, **more}
        return {"model_name": name, "litellm_params": params}

    base = f"http://127.0.0.1:{faulty_port}"
    faults = ("refused", "page", "nginx", "no-choices", "blank", "quota", "rpm")
    models = [
        model("kimi-k3", good, good_key),
        *(model(name, f"{base}/mock/v1", mock_response=text) for name, text in MOCKS.items()),
        *(model(name, f"{base}/{name}/v1") for name in faults),
        # Each of these is asked first by one test only: after a refusal it is in cooldown.
        *(model(f"refused-{n}", f"{base}/refused/v1") for n in (2, 3)),
        model("dead", f"http://127.0.0.1:{dead_port}/v1"),
    ]
    return json.dumps({
        "model_list": models,
        "general_settings": {"master_key": master_key},
        # LiteLLM's own retries would hide what one request brings, and take their time.
        "litellm_settings": {"num_retries": 0},
        "router_settings": {"num_retries": 0},
    }, indent=1)  # fmt: skip


@dataclass(frozen=True)
class Nginx:
    """A running nginx.

    Attributes:
        port: without TLS.
        tls: ports with TLS, by the kind of the certificate.
    """

    port: int
    tls: Mapping[str, int]

    def base(self, location: str) -> str:
        """The base URL of a location."""
        return f"http://127.0.0.1:{self.port}/{location}/v1"

    def secure(self, kind: str) -> str:
        """The base URL with a certificate of some kind."""
        return f"https://127.0.0.1:{self.tls[kind]}/v1"


def nginx(
    folder: Path, made: Nginx, *, good: str, faulty: str, dead: str, gateway: str, ca: str
) -> str:
    """nginx's configuration.

    Args:
        folder: where it may write, and where the certificates ``KIND.pem`` lie.
        made: its ports.
        good, faulty, dead, gateway: ``http://127.0.0.1:PORT`` of a working service, of the failing
            one, of nobody, and of LiteLLM.
        ca: file of the authority for client certificates.
    """
    temp = "".join(
        f"  {what}_temp_path {folder}/{what};\n"
        for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    secure = "".join(
        f"""
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/{kind}.pem;
    ssl_certificate_key {folder}/{kind}.pem;
    {f"ssl_verify_client on; ssl_client_certificate {ca};" if kind == "client" else ""}
    location / {{ proxy_pass {good}; proxy_buffering off; }}
  }}"""
        for kind, port in made.tls.items()
    )
    return f"""
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr info;
worker_processes 1;
events {{ worker_connections 64; }}
http {{
{temp}
  access_log off;
  default_type text/plain;
  limit_req_zone $binary_remote_addr zone=never:1m rate=1r/m;
  limit_req_zone $binary_remote_addr zone=soon:1m rate=60r/m;
  server {{
    listen 127.0.0.1:{made.port};
    location /good/ {{ proxy_pass {good}/; }}
    location /gzip/ {{
      proxy_pass {good}/;
      gzip on; gzip_types application/json; gzip_min_length 1; gzip_proxied any;
    }}
    location /missing/ {{ root {folder}/empty; }}
    location /small/ {{ client_max_body_size 64; proxy_pass {good}/; }}
    location /dead/ {{ proxy_pass {dead}/; }}
    location /slow/ {{ proxy_pass {faulty}/silent/; proxy_read_timeout 1s; }}
    location /teapot/ {{ return 403; }}
    location /password/ {{
      auth_basic "staff"; auth_basic_user_file {folder}/empty/none;
    }}
    location /moved301/ {{ return 301 https://127.0.0.1:{made.tls["good"]}$request_uri; }}
    location /moved307/ {{ return 307 http://collector.test$request_uri; }}
    location /slash/ {{ return 307 $uri/; }}
    location /buffered/ {{ proxy_pass {faulty}/slow-stream/; proxy_buffering on; }}
    location /unbuffered/ {{ proxy_pass {faulty}/slow-stream/; proxy_buffering off; }}
    location /limited/ {{ limit_req zone=never; proxy_pass {good}/; }}
    location /patience/ {{ limit_req zone=soon; proxy_pass {good}/; }}
    location /slashed/ {{
      rewrite ^ /v1/chat/completions/ break;
      proxy_pass {gateway}; proxy_redirect off;
    }}
    location /keyless/ {{ proxy_pass {gateway}/; proxy_set_header Authorization ""; }}
  }}
{secure}
}}
"""


def tinyproxy(port: int, *extra: str) -> str:
    """tinyproxy's configuration."""
    return "\n".join([f"Port {port}", "Listen 127.0.0.1", "Timeout 10", "MaxClients 20",
                      "LogLevel Info", *extra, ""])  # fmt: skip
