"""How a sigmoid is computed, where another form than the plain one is legal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

#: ``tanh``: (1 + tanh(x / 2)) / 2, one instruction on a GPU; it loses digits where x is far below
#: zero. ``rounded``: the argument is stored in the output's precision first, as by a library that
#: computes what comes before in an operation of its own.
Form = Literal["plain", "tanh", "rounded"]


class Activation(TorchDispatchMode):
    """While it is on, sigmoid and SiLU are computed in another form.

    Args:
        form: which one.
        stored: the precision of what is stored in between.
    """

    def __init__(self, form: Form, stored: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's own has no types
        self.form = form
        self.stored = stored

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the operation, or compute it otherwise."""
        name = func._schema.name.removeprefix("aten::")
        if name not in ("sigmoid", "silu"):
            return func(*args, **(kwargs or {}))
        x = args[0]
        if self.form == "rounded":
            return func(x.to(self.stored).to(x.dtype))
        sigmoid = 0.5 * (1 + (0.5 * x).tanh())
        return x * sigmoid if name == "silu" else sigmoid
