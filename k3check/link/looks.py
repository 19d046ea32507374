"""Second looks: what one refusal does not tell, asked of the same host until one cause is left.

A 404 may be about the path, the API, the model or the account, and a 401 about the key or about the
header that carries it. Each look changes one thing of the request that failed: a path that cannot
exist, another header, the list of models, another API, another base on the same host, another
model. The key never leaves its origin. Looks are counted; at most two may cost something.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from k3check.config.client import sdk
from k3check.link.asking import ask, question, request_body
from k3check.link.diagnosis import Phase, providers
from k3check.link.wire.exchange import Call
from k3check.link.wire.jsonsafe import get
from k3check.model import Confidence, Diagnosis, Message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.link.asking import Asked
    from k3check.link.diagnosis import Hit
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.session import Result, Session

NOWHERE = "k3check-no-such-path"
_NO_KEY = "k3check-nonsense-key-0000000000000000"
_MOST_BASES = 8
# A question on a wrong path costs nothing; the first that is answered ends the looking.
_MOST_TRIES = 4
_MOST_MODELS = 2000
HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW
_APIS = {"openai": "chat completions", "anthropic": "Anthropic's Messages",
         "responses": "OpenAI's Responses"}  # fmt: skip
# Rows after which another API of the same base is worth a look.
_OTHER_API = ("gateway.no-candidate", "service.unavailable", "service.not-implemented",
              "model.no-channel", "path.api-missing", "status.unexpected")  # fmt: skip
_PAGES = ("body.html-page", "body.success-false", "body.empty", "body.not-json", "body.no-object")
_KEY = ("auth.refused", "auth.token-missing", "auth.header-kind", "auth.mistyped",
        "auth.token-invalid")  # fmt: skip


@dataclass(frozen=True)
class Looked:
    """What the looks yielded.

    Attributes:
        instead: the diagnoses that take the place of the refusal's own; None to keep them.
        notes: what else they tell.
        asked: an exchange that worked as the client sends it, where ours was not the client's form.
    """

    instead: tuple[Diagnosis, ...] | None = None
    notes: tuple[Message, ...] = ()
    asked: Asked | None = None


def look(session: Session, asked: Asked, wire: str) -> Looked:
    """Look again where the first refusal leaves several causes."""
    failing = asked.result.failing
    if not failing or failing[0].row.phase not in (Phase.HTTP, Phase.SHAPE):
        return Looked()
    before = session.spent.requests, session.spent.chargeable
    looked = _Looker(session, asked, wire, failing[0]).look()
    requests = session.spent.requests - before[0]
    if requests:
        values = {"requests": requests, "chargeable": session.spent.chargeable - before[1]}
        return replace(looked, notes=(*looked.notes, Message("K3L-720", values)))
    return looked


class _Looker:
    """The looks after one refusal."""

    def __init__(self, session: Session, asked: Asked, wire: str, hit: Hit) -> None:
        self.session, self.asked, self.wire, self.hit = session, asked, wire, hit
        self.seen = asked.result.seen
        self.tries = 0

    def look(self) -> Looked:
        """By what the refusal is about."""
        slug, status = self.hit.row.slug, self.seen.status
        # Certain words need no second look, except those that say that an API is not there.
        certain = self.hit.confidence is HIGH and slug not in (*_OTHER_API, *_PAGES)
        if slug.startswith("url.") and self.hit.row.code not in ("K3L-004", "K3L-005"):
            return self._path(lost=True)
        if slug in _KEY and not certain:
            return self._key()
        if slug in _PAGES and self.seen.ok:
            return self._path(lost=True)
        if slug in _OTHER_API:
            return self._other_api() or Looked()
        if certain:
            return Looked()
        if slug.startswith(("path.", "body.messages", "body.responses")) or status in (404, 405):
            return self._path(lost=False)
        if slug.startswith("model.") or (status in (400, 403, 422) and self._names_model()):
            return self._model()
        return Looked()

    # What is asked.

    def _models(self, session: Session, **changes: Any) -> Result:
        call = Call("GET", session.base.url("models"), auth=session.auth(self.wire))
        return session.ask(replace(call, **changes), "models", retries=False)

    def _post(self, session: Session, wire: str) -> Asked | None:
        """The same question elsewhere; None once enough was spent."""
        if self.tries >= _MOST_TRIES:
            return None
        self.tries += 1
        body = request_body(session, wire, question(session))
        asked = ask(session, wire, body, nonce=session.nonce)
        return asked if asked.result.answered else None

    def _nowhere(self) -> Observation | None:
        """The answer to a path that cannot exist, beside the one that was asked."""
        call = self.seen.exchange.call
        where = re.sub(r"(chat/completions|messages|responses)(?=$|[?])", NOWHERE, call.url)
        if where == call.url or call.body is None:
            return None
        return self.session.ask(replace(call, url=where), self.wire, retries=False).seen

    # What it tells.

    def _key(self) -> Looked:
        """The header, or the key itself: the list of models costs nothing."""
        session = self.session
        auth = session.auth(self.wire)
        other = "bearer" if auth == "x-api-key" else "x-api-key"
        if _ids(self._models(session)) is None:
            if _ids(self._models(session, auth=other)) is None:
                return Looked()
            names = {"bearer": "Authorization: Bearer", "x-api-key": "x-api-key"}
            values = dict(self.hit.values) | {"sent": names[auth], "wanted": names[other]}
            request = replace(session.request, auth=other)
            works = self._post(replace(session, request=request, _client=None), self.wire)
            return Looked((Diagnosis("K3L-208", HIGH if works else MEDIUM, values=values),))
        if _ids(self._models(session, key=_NO_KEY)) is None:
            return Looked(notes=(Message("K3L-723", {"host": session.base.host}),))
        return Looked()

    def _path(self, *, lost: bool) -> Looked:
        """Path, API, model or account."""
        if not lost:
            nowhere = self._nowhere()
            if nowhere is None or nowhere.exchange.failure is not None or nowhere.ok:
                return Looked()
            if _shape(nowhere) != _shape(self.seen):
                return self._model(route=True)
            # An outer layer may refuse everything, and a gateway may look at the model first.
            if self.seen.status != 404 or self._names_model():
                return self._model()
        listed = _ids(self._models(self.session))
        if listed is not None and (found := self._other_api()):
            return found
        if found := self._elsewhere():
            return found
        if listed is None and (found := self._other_api()):
            return found
        if lost:
            return Looked()
        return Looked((Diagnosis("K3L-724", HIGH, values=self.hit.values),))

    def _bases(self) -> Iterator[Session]:
        """The same host's likely bases, the closest to the configured one first."""
        session, base = self.session, self.session.base
        parts = base.parts
        root = f"{parts.scheme}://{parts.netloc}"
        here = parts.path.rstrip("/")
        tail = "/v1" if self.wire == "anthropic" and base.keeps_version else ""
        near = {here.removesuffix("/v1"), here if here.endswith("/v1") else here + "/v1"}
        known = [path + tail for path in providers.bases(self.wire)]
        known.sort(key=lambda path: (*_likely(here, path), path))
        corrected = self._corrected(root)
        paths = dict.fromkeys([*corrected, *sorted(near - {here}), *known])
        been = {self.seen.exchange.call.url}
        if session.request.client is None and self.wire != "anthropic":
            # The base as it is written: what clients of OpenAI's own library do.
            request = replace(session.request, client=sdk("OpenAI's library", self.wire))  # type: ignore[arg-type]
            written = replace(session, request=request, base=request.address(), _client=None)
            if written.url(self.wire) not in been:
                been.add(written.url(self.wire))
                yield written
        for path in paths:
            other = session.with_base(root + path)
            if other.url(self.wire) not in been:
                been.add(other.url(self.wire))
                yield other

    def _corrected(self, root: str) -> list[str]:
        text = self.session.base.corrected
        return [text.removeprefix(root)] if text.startswith(root) else []

    def _elsewhere(self) -> Looked | None:
        """Another base of the same host under which the same request is answered."""
        silent = []
        corrected = self.session.base.corrected
        for number, other in enumerate(self._bases()):
            if number >= _MOST_BASES:
                break
            try:
                # What the base's own text says is asked at once.
                certain = self.hit.row.slug.startswith("url.") and other.base.text == corrected
                certain = certain or other.request.client is not self.session.request.client
                if not certain and _ids(self._models(other)) is None:
                    silent.append(other)
                    continue
                if found := self._answered(other):
                    return found
            finally:
                other.close()
        # An Anthropic API often lists no models; a wrong path costs nothing.
        for other in silent[:_MOST_TRIES] if self.wire == "anthropic" else ():
            try:
                if found := self._answered(other):
                    return found
            finally:
                other.close()
        return None

    def _answered(self, other: Session) -> Looked | None:
        asked = self._post(other, self.wire)
        if asked is None:
            return None
        url = self.session.redactor.excerpt
        if other.request.client is not None and self.session.request.client is None:
            # No client is configured: the base is right as an SDK takes it.
            self.session.base = other.base
            self.session.request = other.request
            note = Message("K3L-725", {"url": url(other.url(self.wire)),
                                       "tried": url(self.seen.exchange.call.url)})  # fmt: skip
            return Looked((), (note,), asked)
        values = dict(self.hit.values) | {"found_base_url": url(other.base.shown)}
        return Looked((Diagnosis("K3L-703", HIGH, values=values),))

    def _other_api(self) -> Looked | None:
        """Another API of the same base that answers."""
        for wire in ("openai", "anthropic", "responses"):
            if wire == self.wire:
                continue
            request = replace(self.session.request, protocol=wire, client=None)
            other = replace(self.session, request=request, base=request.address(), _client=None)
            try:
                asked = self._post(other, wire)
            finally:
                other.close()
            if asked is not None:
                base = asked.result.seen.exchange.call.url
                base = re.sub(r"(/v1)?/messages$|/chat/completions$|/responses$", "", base)
                values = dict(self.hit.values) | {
                    "works": _APIS[wire],
                    "asked": _APIS[self.wire],
                    "found_base_url": self.session.redactor.excerpt(base),
                }
                return Looked((Diagnosis("K3L-704", HIGH, values=values),))
            if wire == "openai":
                break  # a server without chat completions hardly has the others
        return None

    def _names_model(self) -> bool:
        model = (self.session.request.model or "").lower()
        words = self.seen.words
        return bool(model) and (model in words or "model" in words or "模型" in words)

    def _model(self, *, route: bool = False) -> Looked:
        """The model or the account: what is listed, and whether a listed one is answered."""
        session, model = self.session, self.session.request.model or ""
        ids = _ids(self._models(session))
        if ids and model not in ids:
            near = difflib.get_close_matches(model, ids, n=1, cutoff=0.6)
            named = [i for i in ids if i.lower() in self.seen.words and len(i) > 2]
            for other in [*named, *near, *(ids if len(ids) == 1 else ())][:1]:
                request = replace(session.request, model=other)
                asked = self._post(replace(session, request=request, _client=None), self.wire)
                if asked is not None:
                    values = dict(self.hit.values) | {"other": session.redactor.excerpt(other)}
                    return Looked((Diagnosis("K3L-726", HIGH, values=values),))
        values = dict(self.hit.values)
        if route:
            return Looked((Diagnosis("K3L-717", MEDIUM, values=values),))
        return Looked()


# Where most have their API.
_USUAL = ("/v1", "/api/v1", "")
_TYPO = 0.75


def _likely(here: str, path: str) -> tuple[int, float]:
    """The rank of a known path: what a typing error makes of it, the usual ones, the others."""
    alike = difflib.SequenceMatcher(None, here, path).ratio()
    usual = _USUAL.index(path) + 1 if path in _USUAL else len(_USUAL) + 1
    return (0 if alike >= _TYPO else usual), -alike


def _ids(result: Result) -> list[str] | None:
    """The ids of a list of models; None if there is none."""
    data = result.seen.at("data")
    if result.failing or not isinstance(data, list):
        return None
    return [i for card in data[:_MOST_MODELS] if isinstance(i := get(card, "id"), str)]


def _shape(seen: Observation) -> tuple[Any, ...]:
    """A refusal without what differs from request to request: path, numbers, ids."""
    call = seen.exchange.call
    path = call.url.partition("://")[2].partition("/")[2]
    text = seen.text[:4000].replace(call.url, "@").replace(path, "@")
    text = re.sub(r"(?i)(chat/completions|/messages|/responses)|" + NOWHERE, "@", text)
    text = re.sub(r"(?i)[0-9a-f]{6,}(?:-[0-9a-f]+)*|\d+", "#", text)
    return seen.status, seen.exchange.media_type, text
