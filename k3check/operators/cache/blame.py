"""Which piece of a snapshot is wrong, on which side, and how.

Which: with every other layer computed by the reference, resuming still fails. On which side: the
saved piece is not the reference's, or it is and the operator makes something else of it. How: see
:mod:`k3check.operators.cache.pieces`; a way must explain every prefix length, those too where
nothing is wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.model import Confidence, Diagnosis, Message
from k3check.operators.cache.layers import (
    BASELINE,
    CANDIDATE,
    CONV,
    KDA,
    MLA,
    REFERENCE,
    forward,
)
from k3check.operators.cache.pieces import Track, wrongs
from k3check.operators.cache.resume import Limits, distance, gaps, last_token, resume

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from k3check.model import Finding
    from k3check.operators.cache.layers import Layer, Runner
    from k3check.operators.cache.pieces import Wrong
    from k3check.operators.cache.resume import Point

UNKNOWN_SAVED, UNKNOWN_READ = "K3O-801", "K3O-802"
POSITION = "K3O-807"

#: what was saved wrongly, by piece
SAVED = {
    KDA.piece: {
        "missing": "K3O-803",
        "behind": "K3O-804",
        "ahead": "K3O-805",
        "boundary": "K3O-806",
        "transposed": "K3O-808",
        "other-sequence": "K3O-809",
    },
    CONV.piece: {
        "missing": "K3O-812",
        "behind": "K3O-813",
        "ahead": "K3O-814",
        "boundary": "K3O-815",
        "shifted": "K3O-817",
        "reversed": "K3O-818",
        "transposed": "K3O-819",
        "other-sequence": "K3O-820",
    },
    MLA.piece: {
        "missing": "K3O-822",
        "behind": "K3O-823",
        "ahead": "K3O-824",
        "boundary": "K3O-825",
        "transposed": "K3O-826",
        "other-sequence": "K3O-827",
    },
}
#: what was read wrongly, by piece; where the catalogue of bugs knows no more than this
READ = {
    KDA.piece: {"missing": "K3O-810", "transposed": "K3O-811", "ahead": "K3O-829"},
    # the first three of four columns are the window one token before
    CONV.piece: {"missing": "K3O-821", "shifted": "K3O-816", "behind": "K3O-816"},
    MLA.piece: {"missing": "K3O-828"},
}


def blamed(found: Finding, layers: Sequence[Layer], cuts: Sequence[Point]) -> Finding:
    """A failed finding with the pieces that are wrong."""
    diagnoses: list[Diagnosis] = []
    evidence: dict[str, Any] = {}
    for index in range(len(layers)):
        diagnoses += one_layer(layers, index, cuts, evidence)
    if not diagnoses:
        return found
    first = diagnoses[0]
    return replace(
        found,
        diagnoses=tuple(diagnoses),
        hint=Message(first.code, first.values),
        evidence={**found.evidence, **evidence},
    )


def one_layer(
    layers: Sequence[Layer], index: int, cuts: Sequence[Point], evidence: dict[str, Any]
) -> list[Diagnosis]:
    """What is wrong with a layer when all the others are exact; empty if nothing is."""
    tokens = last_token(cuts)

    def alone(runner: Runner) -> list[Runner]:
        return [runner if i == index else REFERENCE for i in range(len(layers))]

    done = resume(layers, alone(CANDIDATE), cuts)
    limits = Limits.of(layers, tokens, alone(BASELINE))
    if all(gap.ratio <= 1 for cut in done for gap in gaps(cut, limits.by_name(cut.point))):
        return []
    layer, front = layers[index], layers[: index + 1]
    limits = Limits.of(front, tokens, alone(BASELINE)[: index + 1])
    track = Track.of(layers, index, tokens)
    limit = limits.piece(index)
    saved = {cut.point.prefix: cut.saved.pieces[index] for cut in done}
    off = [n for n, piece in saved.items() if not distance(piece, track.pieces[n]) <= limit]
    values: dict[str, Any] = {"piece": layer.kind.title, "operator": layer.saver.operator.name}
    if off:
        values["n"] = off[0]
        saved_as = saved_wrongs(layer, track, saved, limit)
        if saved_as:
            return told(saved_as, SAVED[layer.kind.piece], values)
        found = elsewhere(layer, track, saved, limit)
        if found is not None:
            evidence["saved"] = {f"at {n} tokens": f"the state at {m}" for n, m in found.items()}
            values["found"] = found[off[0]]
            return [Diagnosis(POSITION, Confidence.HIGH, values=values)]
        return [Diagnosis(UNKNOWN_SAVED, Confidence.MEDIUM, values=values)]
    values |= {"operator": layer.reader.operator.name, "n": next(iter(saved))}
    read_as = read_wrongs(layer, track, cuts, limits)
    if not read_as:
        return [Diagnosis(UNKNOWN_READ, Confidence.MEDIUM, values=values)]
    evidence["acts as if it were"] = ", ".join(dict.fromkeys(wrong.slug for wrong in read_as))
    return told(read_as, READ[layer.kind.piece], values)


def told(
    matches: Sequence[Wrong], codes: Mapping[str, str], common: Mapping[str, Any]
) -> list[Diagnosis]:
    """One diagnosis a code; sure if there is one alone."""
    by_code: dict[str, dict[str, Any]] = {}
    for wrong in matches:
        values = dict(common)
        if wrong.position is not None:
            values["found"] = wrong.position(common["n"])
        by_code.setdefault(codes.get(wrong.slug, UNKNOWN_READ), values)
    sure = Confidence.HIGH if len(by_code) == 1 else Confidence.MEDIUM
    return [Diagnosis(code, sure, values=values) for code, values in by_code.items()]


def saved_wrongs(
    layer: Layer, track: Track, saved: Mapping[int, torch.Tensor], limit: float
) -> list[Wrong]:
    """The ways of being wrong that give exactly what was saved, at every prefix length."""
    found = []
    for wrong in wrongs(layer.kind, track):
        made = {n: wrong.make(n) for n in saved}
        if all(
            piece is not None and distance(saved[n], piece) <= limit for n, piece in made.items()
        ):
            found.append(wrong)
    return found


def elsewhere(
    layer: Layer, track: Track, saved: Mapping[int, torch.Tensor], limit: float
) -> dict[int, int] | None:
    """The positions at which the saved states are right, None if one is right nowhere."""
    if layer.kind is not KDA:
        return None
    found = {}
    for n, piece in saved.items():
        order = sorted(range(len(track.pieces)), key=lambda m: abs(m - n))
        where = next((m for m in order if distance(piece, track.pieces[m]) <= limit), None)
        if where is None:
            return None
        found[n] = where
    return found


def read_wrongs(layer: Layer, track: Track, cuts: Sequence[Point], limits: Limits) -> list[Wrong]:
    """The wrong pieces from which the reference does what the operator does with the right one."""
    found = list(wrongs(layer.kind, track))
    if layer.reader.operator.name == "kda_step":  # reads a piece at every token, not once
        least = min(point.suffix for point in cuts)
        cuts = [point for point in cuts if point.suffix == least]
    for point in cuts:
        stretch = (point.prefix, point.end)
        before = None if track.before is None else track.before[:, point.prefix : point.end]
        right = track.pieces[point.prefix]
        output, after = forward(layer, stretch, right, before, CANDIDATE)
        limit = limits.piece(len(limits.layers) - 1) if output is None else limits.output(point)
        kept = []
        for wrong in found:
            piece = wrong.make(point.prefix)
            if piece is None:
                continue
            would, end = forward(layer, stretch, piece, before, REFERENCE)
            pair = (after.cpu(), end) if output is None or would is None else (output, would)
            if distance(*pair) <= limit:
                kept.append(wrong)
        found = kept
    return found
