"""How callables of the field take packed weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.mxfp4.semantics import Mxfp4Interface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

    Bind = Callable[[frozenset[str] | None, Mapping[str, Any]], Binding]


def _binder(first: str, second: str | None, *, grouped: bool = False) -> Bind:
    """A convention with these names for the bytes; dtype where the callable takes it."""

    def bind(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
        layout = Mxfp4Interface() if second else Mxfp4Interface(layout="ggml")
        with_dtype = names is None or "dtype" in names

        def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
            dtype = inputs["dtype"]
            if second is None:
                arguments: dict[str, Any] = {first: inputs["blocks"]}
            else:
                packed = inputs["packed"]
                if grouped:
                    packed = packed.view(len(packed), -1, 16)
                arguments = {first: packed, second: inputs["scale"]}
            if with_dtype:
                arguments["dtype"] = dtype
            result = target(**{**arguments, **options})
            rows = len(next(iter(arguments.values())))
            # A callable without a dtype returns what it likes: the values are exact in any.
            return {"output": (result if with_dtype else result.to(dtype)).reshape(rows, -1)}

        return Binding(layout, call)

    return bind


def _example(signature: str) -> Example:
    name = signature.partition("(")[0]
    returned = "output [R, C], or anything of R rows that can be reshaped to it; without a "
    return Example(
        "mxfp4_dequant", f"kernels/mxfp4.py:{name}", signature,
        f"{returned}parameter dtype in any dtype that holds the values",
    )  # fmt: skip


CONVENTIONS = (
    Convention(
        "k3check",
        "packed uint8 [R, C / 2], scale uint8 [R, C / 32]",
        ("packed", "scale"),
        _binder("packed", "scale"),
        typical=("dtype",),
        example=_example("mxfp4_dequant(packed, scale, dtype=torch.bfloat16)"),
    ),
    Convention(
        "compressed-tensors",
        "the checkpoint's names: weight_packed, weight_scale",
        ("weight_packed", "weight_scale"),
        _binder("weight_packed", "weight_scale"),
        typical=("dtype",),
        example=_example("dequantize(weight_packed, weight_scale, dtype=torch.bfloat16)"),
    ),
    Convention(
        "blocks",
        "transformers' gpt-oss form: blocks uint8 [R, G, 16], scales uint8 [R, G]",
        ("blocks", "scales"),
        _binder("blocks", "scales", grouped=True),
        typical=("dtype",),
        example=_example(
            "convert_moe_packed_tensors(blocks, scales, *, dtype=torch.bfloat16, "
            "rows_per_chunk=2**25)",
        ),
    ),
    Convention(
        "ggml",
        "GGML's block_mxfp4 as uint8 [R, G, 17]: a scale, then 16 bytes in split order",
        ("block_mxfp4",),
        _binder("block_mxfp4", None),
        typical=("dtype",),
        example=_example("dequantize_row_mxfp4(block_mxfp4)"),
    ),
)
