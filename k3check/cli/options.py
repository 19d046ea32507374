"""The options that several commands share, with their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    GITHUB = "github"
    MARKDOWN = "markdown"
    HTML = "html"


class DataFormat(StrEnum):
    """How a command that is no report writes."""

    TEXT = "text"
    JSON = "json"


class Lang(StrEnum):
    """The language of sentences; keys and codes are always English."""

    EN = "en"
    ZH = "zh"


class Standard(StrEnum):
    """Levels of the dual-benchmark rule."""

    CANN_L0 = "cann-l0"
    CANN_L1 = "cann-l1"
    CANN_L2 = "cann-l2"


class Profile(StrEnum):
    """How much is checked."""

    QUICK = "quick"
    FULL = "full"
    STRESS = "stress"


class Protocol(StrEnum):
    """The API that the endpoint speaks."""

    AUTO = "auto"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    RESPONSES = "responses"


ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "-c",
        "--config",
        metavar="PATH",
        help="Configuration file. Without it: k3check.toml, config.toml, settings.json, "
        "[tool.k3check] in pyproject.toml.",
    ),
]
FormatOption: TypeAlias = Annotated[
    Format, typer.Option("--format", help="How the report is written.")
]
DataFormatOption: TypeAlias = Annotated[DataFormat, typer.Option("--format", help="How to write.")]
OutputOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="FILE", help="Write to FILE, whole or not at all, for its owner only."
    ),
]
LANG = "k3check.lang"


def _remember(context: typer.Context, lang: Lang) -> Lang:
    """Keep the language where errors that come before the command's own work find it."""
    context.meta[LANG] = lang.value
    return lang


LangOption: TypeAlias = Annotated[
    Lang,
    typer.Option("--lang", callback=_remember, is_eager=True, help="Language of sentences."),
]
VerboseOption: TypeAlias = Annotated[
    bool, typer.Option("-v", "--verbose", help="Also metrics of what passed, notes, all evidence.")
]
QuietOption: TypeAlias = Annotated[
    bool, typer.Option("-q", "--quiet", help="Only failures and the last line.")
]
ProfileOption: TypeAlias = Annotated[
    Profile | None, typer.Option("--profile", help="How much is checked.")
]
SeedOption: TypeAlias = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="Every input is derived from it.")
]
DemoOption: TypeAlias = Annotated[
    bool,
    typer.Option("--demo", help="Needs no configuration: built-in operators, a server of our own."),
]

OperatorOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--operator",
        metavar="NAME=TARGET",
        help="Check your operator: package.module:function, path/file.py:function or dir:FOLDER. "
        "Repeatable.",
    ),
]
OperatorCommandOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--operator-command",
        metavar="NAME=COMMAND",
        help="Check a program: './runner {inputs} {outputs}', two folders of files. Repeatable.",
    ),
]
ConventionOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--convention", metavar="[NAME=]C", help="How your operator takes its tensors. Repeatable."
    ),
]
SemanticsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--semantics", metavar="[NAME=]S", help="k3, kimi-linear or article. Repeatable."),
]
DtypeOption: TypeAlias = Annotated[
    str | None, typer.Option("--dtype", metavar="DTYPE", help="Of inputs and outputs.")
]
StateDtypeOption: TypeAlias = Annotated[
    str | None, typer.Option("--state-dtype", metavar="DTYPE", help="Of a carried state.")
]
DeviceOption: TypeAlias = Annotated[
    str | None, typer.Option("--device", metavar="DEVICE", help="auto, cpu, cuda, cuda:1 ...")
]


class BenchFormat(StrEnum):
    """How a speed comparison is written."""

    TEXT = "text"
    JSON = "json"


HeadsOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--heads", metavar="N", min=1, help="Heads that cases have."),
]
KeyDimOption: TypeAlias = Annotated[
    int | None, typer.Option("--key-dim", metavar="N", min=1, help="K, the size of a key.")
]
ValueDimOption: TypeAlias = Annotated[
    int | None, typer.Option("--value-dim", metavar="N", min=1, help="V, the size of a value.")
]
ToleranceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--tolerance", metavar="auto|FLOAT", help="Cap the derived limits, as relative L2."
    ),
]
StandardOption: TypeAlias = Annotated[
    Standard | None,
    typer.Option("--standard", help="Judge by a level of the dual-benchmark rule instead."),
]
TimeoutOption: TypeAlias = Annotated[
    float | None, typer.Option("--timeout", metavar="S", help="Seconds one check may take.")
]
MemoryLimitOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE", help="Memory that your operator may take, as 2GiB."
    ),
]

BaseUrlOption: TypeAlias = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="The API's address.")
]
ModelOption: TypeAlias = Annotated[
    str | None, typer.Option("--model", metavar="ID", help="The model's id at the endpoint.")
]
ApiKeyEnvOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--api-key-env", metavar="VAR", help="Environment variable with the API key."),
]
ProtocolOption: TypeAlias = Annotated[
    Protocol | None, typer.Option("--protocol", help="The API that the endpoint speaks.")
]
HeaderOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--header", metavar="NAME=VALUE", help="A header sent with every request. Repeatable."
    ),
]
ProxyOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--proxy", metavar="URL", help="The way out, instead of HTTP_PROXY and its like."),
]
CacertOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--cacert", metavar="FILE", help="Certificates to trust besides the usual ones."),
]
TurnsOption: TypeAlias = Annotated[
    int | None, typer.Option("--turns", metavar="N", help="Most turns of the probe agent.")
]
NeedleTokensOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--needle-tokens", metavar="N", help="Length of the probe needle's context."),
]
FixOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--fix", help="Show the certain corrections of the file, and write them; keeps a backup."
    ),
]
DiscoverOption: TypeAlias = Annotated[
    bool,
    typer.Option("--discover", help="Send nothing: list what each tool of this machine would use."),
]
OfflineOption: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Send nothing: only check what is configured.")
]
