"""The state of one run: what is asked, the connection, and what earlier probes found."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from k3check.link.diagnosis import Hit, Level, Phase, classify
from k3check.link.diagnosis.observation import Observation
from k3check.link.request import redactor_of
from k3check.link.wire.client import Client
from k3check.link.wire.proxies import ProxyChoice, choose
from k3check.link.wire.retry import MOST_RETRIES, Judged, Policy, send
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.link.apis.answers import Answer
    from k3check.link.request import LinkRequest
    from k3check.link.wire.exchange import Call, Exchange
    from k3check.link.wire.redact import Redactor
    from k3check.link.wire.urls import Base


# How far this machine's clock may be off before that is worth a note where nothing failed by it.
NOTED_SKEW_S = 300.0


@dataclass(frozen=True)
class Result:
    """One exchange of a probe and what explains it."""

    seen: Observation
    hits: tuple[Hit, ...]
    notes: tuple[Message, ...] = ()

    @property
    def failing(self) -> tuple[Hit, ...]:
        """The hits that fail the check."""
        return tuple(hit for hit in self.hits if hit.row.level is Level.FAIL)

    @property
    def answered(self) -> bool:
        """The endpoint answered as an API does, whatever it said."""
        return self.seen.answer is not None and all(
            hit.row.phase >= Phase.STREAM for hit in self.failing
        )


@dataclass
class Spent:
    """What a run has sent.

    Attributes:
        requests: everything, retries and second looks included.
        chargeable: requests that were answered and may cost something.
        tokens: sum of the usage that answers reported.
    """

    requests: int = 0
    chargeable: int = 0
    tokens: int = 0


@dataclass
class Session:
    """What the probes of one run share.

    Attributes:
        request: what is checked.
        base: its URL, taken apart.
        redactor: removes the key and proxy passwords from everything.
        proxy: the way out.
        nonce: a word that the answers must contain; new in every run.
        ended: why nothing more is sent, once a cause was found that every request shares.
        blocked: why nothing is sent that needs the key or the model.
        passed: names of probes whose exchange worked.
        failed: first failing code by probe.
        canned: the endpoint gives an answer that ignores the question.
        plain: the chat probe's answer, for comparison.
        spent: what was sent so far; shared with the sessions made of this one.
        dropped: request fields that the endpoint refused.
        sampling: whether configured sampling parameters are still sent.
        family: the software that answered, once known.
        told: what is said once in a run and has been said.
    """

    request: LinkRequest
    base: Base
    redactor: Redactor
    proxy: ProxyChoice
    nonce: str = field(default_factory=lambda: f"k3-{os.urandom(3).hex()}")
    ended: Message | None = None
    blocked: Message | None = None
    passed: set[str] = field(default_factory=set)
    failed: dict[str, Message] = field(default_factory=dict)
    canned: bool = False
    plain: Answer | None = None
    spent: Spent = field(default_factory=Spent)
    dropped: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    family: str = ""
    told: set[str] = field(default_factory=set)
    _client: Client | None = None

    @classmethod
    def of(cls, request: LinkRequest) -> Session:
        """A session for a request; sends nothing."""
        base = request.address()
        env = dict(request.env)
        if request.proxy:
            env["proxy"] = request.proxy
        return cls(request, base, redactor_of(request), choose(base, request.proxy, env))

    @property
    def client(self) -> Client:
        """The sender, made when it is first needed."""
        if self._client is None:
            self._client = Client(self.request, self.proxy)
        return self._client

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def wire(self) -> str:
        """The API that the configured protocol speaks."""
        return self.request.protocol if self.request.protocol != "auto" else "openai"

    def auth(self, wire: str) -> str:
        """The header that carries the key on a wire."""
        if self.request.auth != "auto":
            return self.request.auth
        return "x-api-key" if wire == "anthropic" else "bearer"

    def observe(
        self, exchange: Exchange, wire: str, nonce: str = "", facts: Mapping[str, Any] | None = None
    ) -> Observation:
        """An exchange with this run's context."""
        return Observation(
            self.request,
            self.base,
            exchange,
            wire,
            self.proxy,
            nonce,
            self.spent.chargeable,
            facts or {},
        )

    def ask(
        self,
        call: Call,
        wire: str,
        *,
        nonce: str = "",
        facts: Mapping[str, Any] | None = None,
        retries: bool = True,
    ) -> Result:
        """Send a call with retries and classify what comes back.

        Args:
            call: what to send.
            wire: the API that is asked.
            nonce: a word that the answer must contain.
            facts: for the rows that need them.
            retries: send again what can heal.
        """
        most = min(self.request.max_retries, MOST_RETRIES) if retries else 0
        policy = Policy(most, self.request.timeout_s, self.request.backoff_s)

        def explain(exchange: Exchange) -> tuple[Hit, ...]:
            return classify(self.observe(exchange, wire, nonce, facts), self.redactor)

        def judge(exchange: Exchange) -> Judged:
            failing = [hit for hit in explain(exchange) if hit.row.level is Level.FAIL]
            if not failing:
                return Judged()
            row = failing[0].row
            return Judged(row.slug, row.heals, str(failing[0].values.get("message", "")))

        def once() -> Exchange:
            # Every try has the whole time, as it has in the clients.
            return self.client.send(call, time.monotonic() + self.request.timeout_s)

        exchange = self.client.refine(send(once, judge, policy))
        hits = explain(exchange)
        self.spent.requests += len(exchange.attempts)
        seen = self.observe(exchange, wire, nonce, facts)
        if seen.family != "unknown":
            self.family = seen.family
        if wire != "models" and seen.ok:
            self.spent.chargeable += 1
        clock = self._clock(seen, hits)
        if seen.answer is not None and seen.answer.usage is not None:
            usage = seen.answer.usage
            self.spent.tokens += (usage.prompt or 0) + (usage.completion or 0)
        return Result(seen, hits, (*self._remarks(exchange), *clock))

    def _clock(self, seen: Observation, hits: tuple[Hit, ...]) -> tuple[Message, ...]:
        """A note, once in a run, that this machine's clock is wrong where nothing fails by it."""
        if "clock" in self.told or abs(seen.skew_s) < NOTED_SKEW_S or seen.server_time is None:
            return ()
        self.told.add("clock")
        if any(hit.row.code == "K3L-213" for hit in hits):
            return ()
        from k3check.link.wire.clock import shown

        ours = shown(seen.exchange.received_at or 0.0)
        return (Message("K3L-916", {"ours": ours, "theirs": shown(seen.server_time)}),)

    def _remarks(self, exchange: Exchange) -> tuple[Message, ...]:
        """Notes about how an exchange went, whatever its diagnosis."""
        notes = []
        tries = exchange.attempts
        if len(tries) > 1 and tries[-1].outcome == "ok":
            seen = ", ".join(dict.fromkeys(t.outcome for t in tries[:-1]))
            notes.append(Message("K3L-900", {"attempts": len(tries), "causes": seen}))
        if exchange.give_up.startswith("the wait") and exchange.wait_asked_s is not None:
            notes.append(Message("K3L-905", {"seconds": f"{exchange.wait_asked_s:.3g}"}))
        words = " ".join([exchange.text[:65536], *exchange.headers.values()])
        if self.redactor.contains(words):
            notes.append(Message("K3L-634", {"host": self.base.host}))
        return tuple(notes)

    def url(self, wire: str) -> str:
        """Where a wire's requests go with the base as it is configured."""
        return self.base.url(wire)

    def prepared(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A body without the fields that the endpoint has refused before."""
        return {self.renamed.get(k, k): v for k, v in body.items() if k not in self.dropped}

    def with_base(self, base_url: str) -> Session:
        """A session for the same endpoint under a corrected base."""
        return replace(
            self,
            base=self.request.address(base_url),
            request=replace(self.request, base_url=base_url),
            _client=None,
        )
