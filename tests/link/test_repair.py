"""Corrections of configuration files: minimal, undoable, and without the key."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from k3check.config.load import load
from k3check.link import check
from k3check.link.demo import DemoServer
from k3check.link.repair import Change, changes, chosen, diff, repairs, write
from k3check.link.request import request_from
from k3check.link.wire.redact import Redactor
from k3check.model import Confidence, Diagnosis, Finding, Outcome
from k3check.report.listener import Silent
from tests.link.catalogue import error
from tests.link.conftest import CANARY
from tests.link.faulty import FaultyServer, answer, http

TOML = f"""# my endpoint
[api]
base_url = "https://gw.test/v1/chat/completions?utm_source=x"  # from the blog
api_key = "{CANARY}"
timeout_seconds = 120
max_retries = 17 # many

[model]
name = 'Kimi-K3'
temperature = 0.6
max_output_tokens = 256
"""


class Asked:
    probes = ("lint",)
    offline = True
    profile = None


def plan(folder: Path, **asked: Any) -> tuple[Change, ...]:
    loaded = load(cwd=folder, env={})
    options = Asked()
    for name, value in asked.items():
        setattr(options, name, value)
    request = request_from(loaded, options, env={})
    found = check(request, Silent())
    wanted = repairs(request, found, loaded.origins, folder)
    return changes(chosen(request, wanted, tries=not options.offline))


def test_toml_is_corrected_in_place(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(TOML)
    file.chmod(0o600)
    (change,) = plan(tmp_path)
    assert change.refused == ""
    assert change.before == TOML
    expected = (
        TOML.replace("?utm_source=x", "")  # the rest was not seen to work
    )
    assert change.after == expected
    shown = diff(change, Redactor((CANARY,)))
    assert '-base_url = "https://gw.test/v1/chat/completions?utm_source=x"' in shown
    assert '+base_url = "https://gw.test/v1/chat/completions"  # from the blog' in shown
    assert CANARY not in shown
    assert CANARY not in diff(change, Redactor(()))
    backup = write(change)
    assert file.read_text() == expected
    assert backup.read_text() == TOML
    assert backup.name == "config.toml.bak"
    if os.name == "posix":
        assert file.stat().st_mode & 0o777 == 0o600
        assert backup.stat().st_mode & 0o777 == 0o600
    assert write(Change(file, expected, TOML)).name == "config.toml.bak1"
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "config.toml", "config.toml.bak", "config.toml.bak1",
    ]  # fmt: skip


def test_json_is_corrected_in_place(tmp_path: Path) -> None:
    lines = (
        "{",
        f'  "baseUrl": "https://gw.test/api?x=1", "apiKey": "{CANARY}",',
        '  "model": "kimi-k3", "modelConfig": {"temperature": 0.6}',
        "}",
        "",
    )
    before = "\r\n".join(lines)
    (tmp_path / "settings.json").write_bytes(before.encode())
    (change,) = plan(tmp_path)
    expected = before.replace("?x=1", "")
    assert change.after == expected
    write(change)
    assert (tmp_path / "settings.json").read_bytes() == expected.encode()


def test_the_key_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        f'[api]\nbase_url = "https://gw.test/v1"\napi_key = "Bearer {CANARY}"\n'
    )
    assert plan(tmp_path) == ()


def test_values_of_variables_are_not_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'[api]\napi_key = "{CANARY}"\n')
    loaded = load(cwd=tmp_path, env={"K3CHECK_BASE_URL": "https://gw.test/v1?x=1"})
    request = request_from(loaded, Asked(), env={})
    (repair,) = chosen(request, repairs(request, (), loaded.origins, tmp_path), tries=False)
    assert repair.file is None
    assert repair.value == "https://gw.test/v1"
    assert changes((repair,)) == ()


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            f'api = {{ base_url = """https://gw.test/v1?x=1""", api_key = "{CANARY}" }}\n',
            f'api = {{ base_url = "https://gw.test/v1", api_key = "{CANARY}" }}\n',
        ),
        (
            f"[api] # mine\napi_key = '{CANARY}'\nbase_url = '''\nhttps://gw.test/v1?x=1''' # b\n",
            f"[api] # mine\napi_key = '{CANARY}'\nbase_url = \"https://gw.test/v1\" # b\n",
        ),
    ],
)
def test_a_text_of_several_lines_in_toml(text: str, after: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(text)
    (change,) = plan(tmp_path)
    assert (change.refused, change.after) == ("", after)


def test_what_cannot_be_edited_safely_is_left(tmp_path: Path) -> None:
    """Comments in JSON: no parser here could tell whether an edit changes anything else."""
    text = (
        '{"model": "a/kimi-k3", // mine\n"provider": {"a": {"npm": "@ai-sdk/openai-compatible",\n'
        f'"options": {{"apiKey": "{CANARY}",\n"baseURL": "https://gw.test/v1?x=1"}},\n'
        '"models": {"kimi-k3": {}}}}}\n'
    )
    (tmp_path / "opencode.json").write_text(text)
    loaded = load(Path("opencode.json"), cwd=tmp_path, env={})
    request = request_from(loaded, Asked(), env={})
    wanted = chosen(request, repairs(request, (), loaded.origins, tmp_path), tries=False)
    (change,) = changes(wanted)
    assert change.refused
    assert change.after == change.before == text


def test_keys_with_dots_and_lists_are_found(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        'default_model = "k"\n[providers."managed:plan"]\ntype = "kimi"\n'
        f'base_url = "https://gw.test/v1?x=1"\napi_key = "{CANARY}"\n'
        '[models."k"]\nprovider = "managed:plan"\nmodel = "k3"\n'
    )
    (change,) = plan(tmp_path)
    assert not change.refused
    assert 'base_url = "https://gw.test/v1"\n' in change.after


def test_inline_tables_and_dotted_keys(tmp_path: Path) -> None:
    text = f'api.api_key = "{CANARY}"\napi.base_url = "https://gw.test/v1?x=1"\nmodel = {{ name = "kimi-k3", temperature = 0.6 }}\n'  # noqa: E501 - one line on purpose
    (tmp_path / "config.toml").write_text(text)
    (change,) = plan(tmp_path)
    assert tomllib.loads(change.after) == {
        "api": {"api_key": CANARY, "base_url": "https://gw.test/v1"},
        "model": {"name": "kimi-k3", "temperature": 0.6},
    }


def test_pyproject(tmp_path: Path) -> None:
    text = f'[project]\nname = "x"\n\n[tool.k3check.api]\nbase_url = "https://gw.test/v1#"\napi_key = "{CANARY}"\n'  # noqa: E501 - a file in one line
    (tmp_path / "pyproject.toml").write_text(text)
    (change,) = plan(tmp_path)
    assert change.after == text.replace("/v1#", "/v1")


def test_what_the_endpoint_said_is_corrected_too(tmp_path: Path) -> None:
    def refuse(connection: Any, request: Any) -> None:
        if request.json.get("top_p") not in (None, 0.95):
            connection.send(error(400, "invalid top_p: only 0.95 is allowed for this model", "x"))
        else:
            connection.send(http(200, answer()))

    with FaultyServer([refuse]) as server:
        text = (
            f'[api]\nbase_url = "{server.base_url}"\napi_key = "{CANARY}"\n[model]\ntop_p = 0.8\n'
        )
        (tmp_path / "config.toml").write_text(text)
        (change,) = plan(tmp_path, probes=("chat",), offline=False)
    assert change.after == text.replace("0.8", "0.95")


@pytest.mark.parametrize(
    ("base", "right"),
    [
        (" https://gw.test/v1 ", "https://gw.test/v1"),
        ("gw.test/v1", "https://gw.test/v1"),
        ("localhost:8000/v1", "http://localhost:8000/v1"),
        ("https://gw.test/v1?x=1", "https://gw.test/v1"),
        ("https://gw.test/v1/v1?x=1", "https://gw.test/v1/v1"),
        ("https://gw.test/v1#", "https://gw.test/v1"),
    ],
)
def test_offline_the_spelling_alone_is_corrected(base: str, right: str, tmp_path: Path) -> None:
    file = tmp_path / "k3check.toml"
    file.write_text(f'[api]\nbase_url = "{base}"\n')
    (change,) = plan(tmp_path)
    assert change.after == change.before.replace(f'"{base}"', f'"{right}"')


@pytest.mark.parametrize(
    "base",
    ["https://gw.test/v1/v1", "https://gw.test/v1/chat/completions", "http://gw.test/v1",
     "https://gw.test/v1/", "https://platform.moonshot.ai"],
)  # fmt: skip
def test_what_was_not_seen_to_work_is_not_written(base: str, tmp_path: Path) -> None:
    (tmp_path / "k3check.toml").write_text(f'[api]\nbase_url = "{base}"\n')
    assert plan(tmp_path) == ()


def test_a_path_is_written_once_it_was_seen_to_work(tmp_path: Path) -> None:
    with DemoServer() as demo:
        text = (
            f'[api]\nbase_url = "{demo.base_url}/chat/completions"\n'
            f'api_key = "{demo.api_key}"\n[model]\nname = "{demo.model}"\n'
        )
        (tmp_path / "config.toml").write_text(text)
        (change,) = plan(tmp_path, offline=False)
        assert change.after == text.replace("/chat/completions", "")
        (tmp_path / "config.toml").write_text(text.replace(demo.model, "kimi-k9"))
        assert plan(tmp_path, offline=False) == ()


def test_a_correction_that_changes_nothing_is_none(tmp_path: Path) -> None:
    base = "https://gw.test/v1"
    (tmp_path / "k3check.toml").write_text(f'[api]\nbase_url = "{base}"\n')
    loaded = load(cwd=tmp_path, env={})
    request = request_from(loaded, Asked(), env={})

    def wanted(value: str) -> list[str]:
        diagnosis = Diagnosis("K3L-703", Confidence.HIGH, values={"found_base_url": value})
        finding = Finding("link/chat", "link", None, None, Outcome.FAIL, "x", diagnoses=[diagnosis])
        return [repair.value for repair in repairs(request, [finding], loaded.origins, tmp_path)]

    assert wanted(base) == []
    assert wanted("https://gw.test/***/v1") == []  # what was masked is not written
    assert wanted("https://gw.test/api/v1") == ["https://gw.test/api/v1"]
