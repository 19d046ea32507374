"""MXFP4: every code under every scale against plain arithmetic, layouts, conventions."""

from __future__ import annotations

import math

import pytest
import torch

from k3check.nouns.recipe import Recipe
from k3check.operators.mxfp4.reference import evaluate
from k3check.operators.mxfp4.semantics import OCP, ZERO, Mxfp4Interface
from tests.operators.harness import (
    DTYPES,
    VISIBLE,
    assert_passes,
    claims,
    findings_for,
    operator_of,
    outcomes,
    seen_by,
)


def number(code: int, byte: int) -> float:
    """E2M1 by its definition: one sign bit, two exponent bits with bias 1, one mantissa bit."""
    sign, exponent, mantissa = code >> 3, code >> 1 & 3, code & 1
    magnitude = mantissa * 0.5 if exponent == 0 else (1 + mantissa / 2) * 2.0 ** (exponent - 1)
    return (-1) ** sign * math.ldexp(magnitude, byte - 127)


@pytest.mark.parametrize("byte", range(255))
def test_every_code_under_every_scale(byte):
    low = torch.arange(16)
    packed = (low | (15 - low) << 4).to(torch.uint8).unsqueeze(0)
    inputs = {"packed": packed, "scale": torch.tensor([[byte]], dtype=torch.uint8),
              "dtype": torch.float64}  # fmt: skip
    got = evaluate(OCP, Mxfp4Interface(), inputs)["output"][0].tolist()
    assert got[0::2] == [number(c, byte) for c in range(16)]
    assert got[1::2] == [number(15 - c, byte) for c in range(16)]


def test_the_byte_255_is_no_number():
    inputs = {"packed": torch.full((1, 16), 0x22, dtype=torch.uint8), "dtype": torch.float32,
              "scale": torch.tensor([[255]], dtype=torch.uint8)}  # fmt: skip
    assert evaluate(OCP, Mxfp4Interface(), inputs)["output"].isnan().all()
    assert not evaluate(ZERO, Mxfp4Interface(), inputs)["output"].any()


def test_values_beyond_the_dtype_are_infinite():
    inputs = {"packed": torch.full((1, 16), 0xF7, dtype=torch.uint8), "dtype": torch.float16,
              "scale": torch.tensor([[127 + 14]], dtype=torch.uint8)}  # fmt: skip
    got = evaluate(OCP, Mxfp4Interface(), inputs)["output"][0]  # 6 * 2^14 is beyond 65504
    assert got[:2].tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_builtin_passes(dtype, seed):
    assert_passes("mxfp4_dequant", dtype=dtype, seed=seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("case", "slug"), claims("mxfp4_dequant"))
def test_what_a_case_claims_to_see_is_visible(case, slug, dtype):
    assert seen_by("mxfp4_dequant", case, slug, dtype) >= VISIBLE


def test_every_fault_is_seen_by_a_case():
    slugs = {f.slug for f in operator_of("mxfp4_dequant").faults(OCP, Mxfp4Interface(), Recipe())}
    assert slugs == {slug for _, slug in claims("mxfp4_dequant")}


def values(code):
    return torch.tensor([number(c, 127) for c in range(16)])[code.long()]


def checkpoint(weight_packed, weight_scale, dtype):
    code = torch.stack([weight_packed & 15, weight_packed >> 4], -1).flatten(1)
    factor = torch.exp2(weight_scale.double() - 127)
    factor = torch.where(weight_scale == 255, torch.nan, factor)
    return (values(code).double() * factor.repeat_interleave(32, 1)).to(dtype)


def gpt_oss(blocks, scales, dtype=torch.bfloat16):
    out = torch.empty(*blocks.shape[:-1], 32, dtype=torch.float64)
    out[..., 0::2], out[..., 1::2] = values(blocks & 15), values(blocks >> 4)
    factor = torch.exp2(scales.double() - 127)
    return (out * torch.where(scales == 255, torch.nan, factor).unsqueeze(-1)).to(dtype)


def ggml(block_mxfp4):
    data, scale = block_mxfp4[..., 1:], block_mxfp4[..., 0].double()
    out = torch.cat([values(data & 15), values(data >> 4)], -1).double()
    factor = torch.where(scale == 255, torch.nan, torch.exp2(scale - 127))
    return out * factor.unsqueeze(-1)


RIGHT = {"compressed-tensors": checkpoint, "blocks": gpt_oss, "ggml": ggml}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("convention", [*RIGHT, "auto"])
def test_a_right_callable_passes(convention, dtype):
    targets = RIGHT.values() if convention == "auto" else [RIGHT[convention]]
    for target in targets:
        assert_passes("mxfp4_dequant", target, convention=convention, dtype=dtype)


def test_ggml_order_on_the_checkpoint_is_found():
    def split(weight_packed, weight_scale, dtype):
        grouped = weight_packed.view(len(weight_packed), -1, 16)
        code = torch.cat([grouped & 15, grouped >> 4], -1).flatten(1)
        factor = torch.exp2(weight_scale.double() - 127).repeat_interleave(32, 1)
        return (values(code).double() * factor).to(dtype)

    found = findings_for("mxfp4_dequant", split, only={"one-group"})
    assert found["one-group"].hint.code == "K3O-450"


def test_a_single_wrong_element_is_found_and_located():
    def almost(packed, scale, dtype):
        out = checkpoint(packed, scale, dtype)
        out[3, 17] *= 1.0009765625  # one bit of a bfloat16 is 0.8 %, this is less
        out[3, 17] = torch.where(out[3, 17] == 0, torch.ones_like(out[3, 17]), out[3, 17])
        return out

    found = findings_for("mxfp4_dequant", almost, dtype="float32", only={"ordinary"})["ordinary"]
    assert str(found.outcome) == "fail"
    assert found.metrics["output.wrong_elements"] == 1
    assert found.location["row"] == 3
    assert found.location["column"] == 17


@pytest.mark.parametrize("semantics", ["k3", "zero-255"])
def test_both_readings_of_255(semantics):
    def zero(packed, scale, dtype):
        return torch.nan_to_num(checkpoint(packed, scale, torch.float64), nan=0.0).to(dtype)

    expected = {"pass"} if semantics == "zero-255" else {"pass", "fail"}
    assert outcomes("mxfp4_dequant", zero, semantics=semantics) == expected
