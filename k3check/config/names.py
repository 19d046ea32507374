"""Names that a configuration may use: dtypes, protocols, log levels."""

from __future__ import annotations

from typing import Literal, TypeAlias

DType: TypeAlias = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"
]

Protocol: TypeAlias = Literal["auto", "openai", "anthropic", "responses"]
Model: TypeAlias = Literal["k3", "kimi-linear", "article"]
Auth: TypeAlias = Literal["auto", "bearer", "x-api-key", "both"]
LogLevel: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR"]

# What people write for a name that we spell out; used for did-you-mean only, never accepted.
ALIASES = {
    "fp64": "float64",
    "f64": "float64",
    "double": "float64",
    "fp32": "float32",
    "f32": "float32",
    "float": "float32",
    "fp16": "float16",
    "f16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "gpu": "cuda",
    "chat": "openai",
    "warn": "WARNING",
}
