"""Operators that save or read a snapshot wrongly, one mistake each, around the built-in ones.

Every one gives the right outputs of a straight run: only what is carried over is wrong.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from k3check.operators.conv.candidate import short_conv
from k3check.operators.kda.candidate import kda_chunk
from k3check.operators.mla.candidate import gated_mla

PER_TOKEN = ("q", "k", "v", "gate", "beta")


def zeros(x):
    return torch.zeros_like(x)


def other(x):
    return x.roll(1, 0)


def tokens(given, end):
    return {n: x[:, :end] if n in PER_TOKEN else x for n, x in given.items()}


# --- KDA -----------------------------------------------------------------------------------------


def kda_saving(change):
    """The returned state changed."""

    def target(**given):
        output, state = kda_chunk(**given)
        return output, change(state)

    return target


def kda_saving_at(position):
    """The returned state is that after position(T) of the call's T tokens."""

    def target(**given):
        output, state = kda_chunk(**given)
        end = position(output.shape[1])
        if end > 0:
            return output, kda_chunk(**tokens(given, end))[1]
        start = given.get("initial_state")
        return output, zeros(state) if start is None else start.clone()

    return target


def kda_with_own_buffer():
    """Returns a buffer that its next call overwrites."""
    kept = {}

    def target(**given):
        output, state = kda_chunk(**given)
        buffer = kept.setdefault("state", state.clone())
        buffer.copy_(state)
        return output, buffer

    return target


def kda_reading(change):
    """The given state changed before it is read."""

    def target(**given):
        if given.get("initial_state") is not None:
            given["initial_state"] = change(given["initial_state"])
        return kda_chunk(**given)

    return target


def kda_stepping_twice(**given):
    """The first token after a restore updates the state once before the run."""
    if given.get("initial_state") is not None:
        given["initial_state"] = kda_chunk(**tokens(given, 1))[1]
    return kda_chunk(**given)


# --- convolution ---------------------------------------------------------------------------------


def conv_saving(change):
    def target(x, weight, initial_state=None):
        output, state = short_conv(x, weight, initial_state)
        return output, change(state)

    return target


def conv_saving_at(position):
    def target(x, weight, initial_state=None):
        output, state = short_conv(x, weight, initial_state)
        before = zeros(state) if initial_state is None else initial_state
        line = torch.cat([before, x.mT], dim=-1)
        end = before.shape[-1] + position(x.shape[1])
        return output, line[..., end - before.shape[-1] : end].contiguous()

    return target


def conv_with_own_buffer():
    kept = {}

    def target(x, weight, initial_state=None):
        output, state = short_conv(x, weight, initial_state)
        buffer = kept.setdefault("state", state.clone())
        buffer.copy_(state)
        return output, buffer

    return target


def conv_reading(change):
    def target(x, weight, initial_state=None):
        output, state = short_conv(x, weight, initial_state)
        if initial_state is not None:
            output = short_conv(x, weight, change(initial_state))[0]
        return output, state

    return target


def four_columns(change=lambda state: state):
    """The form of flash-linear-attention, whose state has a column more than is read."""

    def causal_conv1d(x, weight, initial_state=None, output_final_state=False, activation=None):
        B, _, C = x.shape
        before = x.new_zeros(B, C, 4) if initial_state is None else initial_state
        output, _ = short_conv(x, weight, before[..., 1:])
        return output, change(torch.cat([before, x.mT], dim=-1)[..., -4:])

    return causal_conv1d


# --- MLA -----------------------------------------------------------------------------------------


def mla_saving(change):
    def target(x, w_qa, q_gain, w_qb, w_kva, kv_gain, w_kvb, w_g, w_o, *, heads, nope, pe, value,
               latent, eps=1e-6, past=None):  # fmt: skip
        output, rows = gated_mla(x, w_qa, q_gain, w_qb, w_kva, kv_gain, w_kvb, w_g, w_o,
                                 heads=heads, nope=nope, pe=pe, value=value, latent=latent,
                                 eps=eps, past=past)  # fmt: skip
        return output, change(rows)

    return target


def mla_reading(change):
    def target(x, w_qa, q_gain, w_qb, w_kva, kv_gain, w_kvb, w_g, w_o, *, heads, nope, pe, value,
               latent, eps=1e-6, past=None):  # fmt: skip
        return gated_mla(x, w_qa, q_gain, w_qb, w_kva, kv_gain, w_kvb, w_g, w_o,
                         heads=heads, nope=nope, pe=pe, value=value, latent=latent,
                         eps=eps, past=None if past is None else change(past))  # fmt: skip

    return target


def cut_at(chunk):
    def change(rows):
        whole = rows.shape[1] // chunk * chunk
        return F.pad(rows[:, :whole], (0, 0, 0, rows.shape[1] - whole))

    return change


def turned(x):
    return x.mT.reshape(x.shape).contiguous()


#: name -> (operator, wrong callable, the code that it must be told by)
FAULTY = {
    "kda never written": ("kda_chunk", lambda: kda_saving(zeros), "K3O-803"),
    "kda one token early": ("kda_chunk", lambda: kda_saving_at(lambda T: T - 1), "K3O-804"),
    "kda overwritten by the next call": ("kda_chunk", kda_with_own_buffer, "K3O-805"),
    "kda at the boundary": ("kda_chunk", lambda: kda_saving_at(lambda T: T // 64 * 64), "K3O-806"),
    "kda at the boundary before": (
        "kda_chunk", lambda: kda_saving_at(lambda T: (T - 1) // 64 * 64), "K3O-806",
    ),
    "kda at the boundary of 16": (
        "kda_chunk", lambda: kda_saving_at(lambda T: T // 16 * 16), "K3O-806",
    ),
    "kda at half": ("kda_chunk", lambda: kda_saving_at(lambda T: T // 2), "K3O-807"),
    "kda transposed": ("kda_chunk", lambda: kda_saving(lambda s: s.mT.contiguous()), "K3O-808"),
    "kda of the other sequence": ("kda_chunk", lambda: kda_saving(other), "K3O-809"),
    "kda garbage": ("kda_chunk", lambda: kda_saving(lambda s: s.cos()), "K3O-801"),
    "kda ignored": ("kda_chunk", lambda: kda_reading(zeros), "K3O-810"),
    "kda read transposed": ("kda_chunk", lambda: kda_reading(lambda s: s.mT), "K3O-811"),
    "kda stepping twice": ("kda_chunk", lambda: kda_stepping_twice, "K3O-829"),
    "kda read halved": ("kda_chunk", lambda: kda_reading(lambda s: s / 2), "K3O-802"),
    "conv never written": ("short_conv", lambda: conv_saving(zeros), "K3O-812"),
    "conv one token early": ("short_conv", lambda: conv_saving_at(lambda T: T - 1), "K3O-813"),
    "conv overwritten by the next call": ("short_conv", conv_with_own_buffer, "K3O-814"),
    "conv at the boundary": (
        "short_conv", lambda: conv_saving_at(lambda T: T // 64 * 64), "K3O-815",
    ),
    "conv columns late": (
        "short_conv", lambda: conv_saving(lambda s: F.pad(s[..., :-1], (1, 0))), "K3O-817",
    ),
    "conv columns early": (
        "short_conv", lambda: conv_saving(lambda s: F.pad(s[..., 1:], (0, 1))), "K3O-817",
    ),
    "conv columns rotated": ("short_conv", lambda: conv_saving(lambda s: s.roll(1, -1)), "K3O-817"),
    "conv reversed": ("short_conv", lambda: conv_saving(lambda s: s.flip(-1)), "K3O-818"),
    "conv transposed": ("short_conv", lambda: conv_saving(turned), "K3O-819"),
    "conv of the other sequence": ("short_conv", lambda: conv_saving(other), "K3O-820"),
    "conv garbage": ("short_conv", lambda: conv_saving(lambda s: s.cos()), "K3O-801"),
    "conv ignored": ("short_conv", lambda: conv_reading(zeros), "K3O-821"),
    "conv read one column off": (
        "short_conv", lambda: conv_reading(lambda s: s.roll(1, -1)), "K3O-816",
    ),
    "mla never written": ("gated_mla", lambda: mla_saving(zeros), "K3O-822"),
    "mla last row missing": (
        "gated_mla", lambda: mla_saving(lambda r: F.pad(r[:, :-1], (0, 0, 0, 1))), "K3O-823",
    ),
    "mla rows late": (
        "gated_mla", lambda: mla_saving(lambda r: F.pad(r[:, :-1], (0, 0, 1, 0))), "K3O-823",
    ),
    "mla rows early": (
        "gated_mla", lambda: mla_saving(lambda r: F.pad(r[:, 1:], (0, 0, 0, 1))), "K3O-824",
    ),
    "mla at the boundary": ("gated_mla", lambda: mla_saving(cut_at(64)), "K3O-825"),
    "mla transposed": ("gated_mla", lambda: mla_saving(turned), "K3O-826"),
    "mla of the other sequence": ("gated_mla", lambda: mla_saving(other), "K3O-827"),
    "mla garbage": ("gated_mla", lambda: mla_saving(lambda r: r.cos()), "K3O-801"),
    "mla ignored": ("gated_mla", lambda: mla_reading(lambda r: r[:, :0]), "K3O-828"),
    "mla read as zeros": ("gated_mla", lambda: mla_reading(zeros), "K3O-828"),
}  # fmt: skip
