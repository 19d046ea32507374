"""What ``k3check link`` and ``all`` have in common: the endpoint's options, its check, its cost."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3check.config.problems import problem
from k3check.model import Text

if TYPE_CHECKING:
    from k3check.cli.work import Result, Shown
    from k3check.config.loaded import Loaded
    from k3check.link.request import LinkRequest
    from k3check.model import Finding, Message, Report
    from k3check.report.listener import Listener

# A run that costs no more than the default probes needs no announcement.
_UNSAID_REQUESTS = 3
_UNSAID_TOKENS = 10_000
_NOTHING_CONFIGURED = ("K3L-001", "K3L-057")


@dataclass(frozen=True)
class LinkOptions:
    """The options that describe the endpoint and what to check of it, as typed."""

    probes: tuple[str, ...] = ()
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    protocol: str | None = None
    headers: tuple[str, ...] = ()
    proxy: str | None = None
    cacert: Path | None = None
    turns: int | None = None
    needle_tokens: int | None = None
    offline: bool = False
    profile: str | None = None

    def overrides(self) -> dict[str, tuple[Any, str]]:
        """Values that override the configuration, each with the option that it comes from.

        Raises:
            UsageError: a variable or a file that an option names is not there.
        """
        found = {
            "api.base_url": (self.base_url, "--base-url"),
            "model.name": (self.model, "--model"),
            "link.protocol": (self.protocol, "--protocol"),
            "api.headers": (_headers(self.headers), "--header"),
            "link.proxy": (self.proxy, "--proxy"),
            "link.ca_file": (self.cacert and _file(self.cacert), "--cacert"),
            "link.agent_turns": (self.turns, "--turns"),
            "link.needle_tokens": (self.needle_tokens, "--needle-tokens"),
            "api.api_key": (
                self.api_key_env and _variable(self.api_key_env),
                f"--api-key-env {self.api_key_env}",
            ),
        }
        return {key: (value, option) for key, (value, option) in found.items() if value is not None}

    def endpoint(self) -> dict[str, object]:
        """The options that describe a real endpoint, with which a demo does not go."""
        return {
            "--base-url": self.base_url,
            "--model": self.model,
            "--api-key-env": self.api_key_env,
            "--protocol": self.protocol,
            "--header": self.headers,
            "--proxy": self.proxy,
            "--cacert": self.cacert,
            "--offline": self.offline,
        }


def _headers(given: tuple[str, ...]) -> dict[str, str] | None:
    headers: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or ":" in name:
            # Not the text itself: what follows may be somebody's key.
            raise problem(
                "K3C-083",
                where="--header",
                found="a text without NAME=" if not equals else "no header's name before =",
                accepted="NAME=VALUE, e.g. X-Route=kimi",
                option="--header",
            )
        headers[name.strip()] = value.strip()
    return headers or None


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise problem(
            "K3C-083",
            where="--api-key-env",
            found=Text("{name} is not set", name=name[:80]),
            accepted="the name of an environment variable that holds the key",
            option="--api-key-env",
        )
    return value


def _file(path: Path) -> str:
    from k3check.config.source import at_home

    path = Path(at_home(str(path), os.environ))
    if not path.is_file():
        raise problem(
            "K3C-083",
            where="--cacert",
            found=Text(
                "{path} is a directory" if path.is_dir() else "{path} is not there", path=str(path)
            ),
            accepted="a PEM file with certificates",
            option="--cacert",
        )
    return str(path)


def require_endpoint(loaded: Loaded) -> None:
    """Refuse to check an endpoint where nothing at all names one.

    A file that has no ``base_url`` is another matter: what is wrong with it is a finding.

    Raises:
        UsageError: no file, no variable and no option says where the endpoint is.
    """
    if loaded.path is None and not loaded.config.api.base_url:
        raise problem(
            "K3C-140",
            where=str(Path.cwd()),
            found="no configuration file, no K3CHECK_BASE_URL, no --base-url",
            accepted="k3check.toml, config.toml, settings.json, [tool.k3check] in pyproject.toml, "
            "or --config FILE",
        )


def require_key(loaded: Loaded, asked: LinkOptions) -> None:
    """Refuse to send requests where the client has its key in a place that is not read.

    Raises:
        UsageError: a command, a login or a store of the client's holds the key; a right way, but
            nothing can be sent from here.
    """
    from k3check import hints
    from k3check.errors import UsageError

    login = loaded.login
    if login is not None and not asked.offline:
        code, values = login.code, dict(login.values)
        raise UsageError(
            code,
            hints.title(code, values=values),
            where=loaded.path.name if loaded.path else None,
            fix=hints.fix(code, values=values),
        )


def nothing_said(loaded: Loaded, asked: LinkOptions) -> bool:
    """Whether no file, no variable and no option says anything about an endpoint."""
    api = loaded.config.api
    key = api.api_key.get_secret_value().strip() if api.api_key else ""
    # With --offline nothing is sent; it does not say that there is somewhere to send it.
    described = any(value for name, value in asked.endpoint().items() if name != "--offline")
    return not (api.base_url or "").strip() and not key and not described


def left_out(why: Message | None = None) -> Finding:
    """The endpoint's line in a report of operators alone: skipped, and how to have it checked."""
    from k3check.link.findings import skipped
    from k3check.link.probes.lint import PROBE
    from k3check.model import Message

    return skipped(PROBE.name, PROBE.title, why or Message("K3C-141"))


def demo_config(asked: LinkOptions | None) -> Loaded:
    """The configuration of a demo: the defaults, and how far the probes go."""
    from k3check.config.check import Setting, build
    from k3check.config.loaded import Loaded

    overrides = asked.overrides() if asked is not None else {}
    return Loaded(build({key: Setting(*found) for key, found in overrides.items()}))


def check(result: Result, asked: LinkOptions, listener: Listener, *, demo: bool) -> LinkRequest:
    """Check the endpoint, or a server of our own; what was found is added to the result."""
    from k3check import link as linking
    from k3check.link import lint, support
    from k3check.link.request import request_from

    result.environment.update(support.environment())
    if demo:
        from k3check.link.demo import DemoServer

        with DemoServer() as server:
            request = request_from(
                result.loaded,
                asked,
                env={},
                base_url=server.base_url,
                api_key=server.api_key,
                model=server.model,
            )
            result.findings += linking.check(request, listener)
        return request
    request = request_from(result.loaded, asked, env=os.environ)
    result.findings += linking.check(request, listener)
    for found in lint.check(request):
        section, _, name = (found.key or "").partition(".")
        result.said.add(f"{section}.{name.partition('.')[0]}")
    return request


def announce(loaded: Loaded, asked: LinkOptions, shown: Shown) -> None:
    """Say on stderr what a run that asks for more than the default probes may cost.

    Raises:
        UsageError: a probe's name is unknown.
    """
    from k3check import hints
    from k3check import link as linking
    from k3check.cli.work import rendering
    from k3check.link import lint
    from k3check.link.problem import Severity
    from k3check.link.request import request_from
    from k3check.report.terminal import write

    request = request_from(loaded, asked, env=os.environ)
    requests, tokens = linking.cost(request)
    more = bool(asked.probes) or request.profile in ("full", "stress")
    dear = requests > _UNSAID_REQUESTS or (more and tokens > _UNSAID_TOKENS)
    blocked = any(p.severity is Severity.BLOCK for p in lint.check(request))
    if dear and not request.offline and not blocked:
        values = {"requests": requests, "tokens": tokens}
        text = hints.title("K3L-915", rendering(shown).lang, values)
        write(sys.stderr, f"k3check: {text}\n")


def ticket(report: Report, shown: Shown) -> str:
    """In Markdown, what to send to the endpoint's support comes before the report.

    A saved report holds all of it too; one of operators alone has none, and one of both only if
    a check of the endpoint failed.
    """
    if shown.format != "markdown":
        return ""
    own = [finding for finding in report.findings if finding.suite == "link"]
    if len(own) < len(report.findings) and not any(f.outcome.is_failure for f in own):
        return ""
    from k3check.cli.work import rendering
    from k3check.link import support

    text = support.summary(report.findings, rendering(shown).lang, report.environment)
    return text + "\n" if text else ""


def discover(shown: Shown) -> None:
    """List what each tool of this machine would use.

    Raises:
        UsageError: a format in which a list cannot be written.
    """
    from k3check.cli import setups_shown as showing
    from k3check.cli import work
    from k3check.link.discover import Machine
    from k3check.link.discover import discover as look_around
    from k3check.masking.settings import known_secrets, scrub

    if shown.format not in ("text", "json"):
        raise problem(
            "K3C-083",
            where="--format",
            found=shown.format,
            accepted="text or json with --discover",
            option="--format",
        )
    found = look_around(Machine(_home(), Path.cwd(), os.environ))
    options = work.rendering(shown)
    if shown.format == "json":
        text = showing.as_json(found, shown.lang)
    else:
        text = showing.as_text(found, options)
    work.emit(scrub(text, known_secrets(os.environ.get("K3CHECK_API_KEY"))), shown)


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # nobody's account: then nothing of it is found
        return Path(os.devnull)


def with_way_out(findings: list[Finding], loaded: Loaded, *, demo: bool) -> list[Finding]:
    """Where no endpoint is configured at all, say how to check the operators alone."""
    from k3check.model import Message

    def hinted(finding: Finding) -> Finding:
        code = finding.diagnoses[0].code if finding.diagnoses else ""
        if finding.id == "link/lint" and code in _NOTHING_CONFIGURED:
            return replace(finding, hint=Message("K3C-097"))
        return finding

    if demo or loaded.config.api.base_url:
        return findings
    return [hinted(finding) for finding in findings]
