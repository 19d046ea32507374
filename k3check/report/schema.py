"""The JSON report's shape, schema_version 1, for reading one back and for ``schema-v1.json``.

Frozen: a different shape is a new schema_version with its own classes. Regenerate the shipped
file with ``python -m k3check.report.schema > k3check/report/schema-v1.json``.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Number = int | float | Literal["NaN", "Infinity", "-Infinity"]
Outcome = Literal["pass", "acceptable", "fail", "skipped", "crashed", "timed_out"]
Code = str


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Tool(_Frozen):
    """Who wrote the report."""

    name: Literal["k3check"]
    version: str


class Config(_Frozen):
    """The configuration file that was used, if any."""

    path: str | None
    dialect: str | None


class Summary(_Frozen):
    """The verdict and the number of checks per outcome."""

    verdict: Literal["pass", "fail", "skipped"]
    pass_: int = Field(alias="pass", ge=0)
    acceptable: int = Field(ge=0)
    fail: int = Field(ge=0)
    skipped: int = Field(ge=0)
    crashed: int = Field(ge=0)
    timed_out: int = Field(ge=0)


class Text(_Frozen):
    """A coded sentence in the language that the report was written in."""

    code: Code
    text: str


class Diagnosis(_Frozen):
    """A mistake that would explain the failure; the first is the likeliest."""

    code: Code
    slug: str
    title: str
    confidence: Literal["high", "medium", "low"]
    residual: Number | None
    margin: Number | None


class Check(_Frozen):
    """One check and its result."""

    id: str
    suite: str
    operator: str | None
    case: str | None
    outcome: Outcome
    title: str
    metrics: dict[str, Number]
    limits: dict[str, Number]
    location: dict[str, Any]
    series: dict[str, list[Number]]
    diagnoses: list[Diagnosis]
    hint: Text | None
    evidence: dict[str, Any]
    notes: list[Text]
    duration_s: Number


class Document(_Frozen):
    """A report of k3check, schema_version 1."""

    model_config = ConfigDict(title="k3check report")

    schema_version: Literal[1]
    tool: Tool
    started_at: str
    duration_s: Number
    environment: dict[str, Any]
    config: Config
    summary: Summary
    checks: list[Check]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a report."""
    schema = Document.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
