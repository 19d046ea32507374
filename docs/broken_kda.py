"""The operator in the README's picture: it decays the state after the correction, not before."""

from __future__ import annotations

import torch


def recurrent_kda(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    scale: float | None = None,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """KDA token by token, as it is easily written wrong.

    Args:
        q, k: [B, T, H, K], normalised.
        v: [B, T, HV, V]; each head of q and k serves HV / H of its heads.
        g: [B, T, HV, K], the decay's logarithm.
        beta: [B, T, HV].
        scale: of q; 1 / sqrt(K) without.
        initial_state: [B, HV, K, V].
        output_final_state: whether the last state is returned.
    """
    groups = v.shape[2] // q.shape[2]
    q, k = (x.repeat_interleave(groups, dim=2) for x in (q, k))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    state = v.new_zeros(*v.shape[:1], v.shape[2], k.shape[-1], v.shape[-1])
    if initial_state is not None:
        state = state + initial_state
    outputs = []
    for t in range(v.shape[1]):
        key, decay = k[:, t].unsqueeze(-1), g[:, t].exp().unsqueeze(-1)
        error = v[:, t] - (key * state).sum(-2)  # the mistake: this state has not decayed yet
        state = decay * state + key * (beta[:, t].unsqueeze(-1) * error).unsqueeze(-2)
        outputs.append((q[:, t].unsqueeze(-1) * scale * state).sum(-2))
    return torch.stack(outputs, dim=1), state if output_final_state else None
