"""Operators whose checks need more of a runner than one call: sub-layers, buffers kept, views."""

from __future__ import annotations

import torch

from k3check.operators.attn_res import candidate
from k3check.operators.conv.candidate import short_conv

_kept = {}


def whole_stack(hidden, sublayers, queries, gains, block_size, eps):
    return candidate.stack(hidden, sublayers, queries, gains, block_size, eps)


def whole_stack_of_other_blocks(hidden, sublayers, queries, gains, block_size, eps):
    return candidate.stack(hidden, sublayers, queries, gains, 2 * block_size, eps)


def conv(x, weight, initial_state=None):
    return short_conv(x, weight, initial_state=initial_state)


def conv_with_own_buffer(x, weight, initial_state=None):
    """Returns a buffer that its next call overwrites."""
    output, state = short_conv(x, weight, initial_state=initial_state)
    buffer = _kept.setdefault(state.shape, state.clone())
    buffer.copy_(state)
    return output, buffer


def conv_that_ignores_strides(x, weight, initial_state=None):
    """Reads the memory of x as if its rows stood one behind the other."""
    flat = torch.as_strided(x, x.shape, torch.empty(x.shape).stride(), x.storage_offset())
    return short_conv(flat, weight, initial_state=initial_state)


def conv_that_writes_its_input(x, weight, initial_state=None):
    found = short_conv(x, weight, initial_state=initial_state)
    x.zero_()
    return found
