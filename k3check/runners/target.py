"""Load the callable that a target names. The worker's side: this runs the user's code."""

from __future__ import annotations

import ast
import difflib
import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from k3check import hints
from k3check.errors import UsageError
from k3check.model import Text
from k3check.nouns.candidate_error import classify, one_line, trimmed
from k3check.runners.importing import PRIVATE, load_file, make_importable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from k3check.nouns.request import CandidateSpec

FORMS = "package.module:function or path/file.py:function"


def load_target(spec: CandidateSpec, directory: str) -> Callable[..., Any]:
    """Load a candidate's callable.

    Relative paths start at ``directory``, which becomes importable, as does a file's own folder.
    A file that several operators name is loaded once.

    Args:
        spec: the candidate; its target must not be None.
        directory: the working directory.

    Returns:
        The object that the target names, as it is.

    Raises:
        UsageError: K3C-060 ... K3C-068, with the candidate's origin.
    """
    assert spec.target is not None, "the built-in implementation is not loaded from a target"
    where = f"{spec.origin}  {spec.target}" if spec.target else spec.origin
    return _Loader(spec.target, where, Path(directory).resolve()).load()


class _Loader:
    """One target on its way from text to callable."""

    def __init__(self, target: str, where: str, directory: Path) -> None:
        self.target = target
        self.where = where
        self.directory = directory

    def load(self) -> Callable[..., Any]:
        """Parse, import, look up."""
        source, attribute = self._parse()
        make_importable(self.directory)
        module = self._import(source)
        found = self._attribute(module, attribute)
        if not callable(found):
            raise self._error(
                "K3C-065",
                found=f"{attribute} is {_describe(found)}",
                accepted=_choices(_callables(module)) or "a function or another callable",
                name=attribute,
                type=type(found).__name__,
            )
        return found  # type: ignore[no-any-return]  # callable() narrows Any to itself

    def _parse(self) -> tuple[str | Path, str]:
        """The module's name or the file, and the names after the last colon."""
        place, colon, attribute = self.target.strip().rpartition(":")
        place = place if colon else attribute
        if not place:
            raise self._error("K3C-060", found=repr(self.target), accepted=FORMS)
        path = self._path(place)
        is_name = _is_dotted_name(place) and not place.endswith(".py")
        if path.is_dir() and not (is_name and colon):
            raise self._error(
                "K3C-066", found=Text("the folder {path}", path=str(path)), accepted=FORMS
            )
        is_path = place.endswith(".py") or "/" in place or "\\" in place
        if not colon or not _is_dotted_name(attribute) or not (is_name or is_path):
            names = _functions_in(path) if path.suffix == ".py" else ()
            accepted = _choices(f"{place}:{name}" for name in names) or FORMS
            raise self._error("K3C-060", found=repr(self.target), accepted=accepted)
        return (place if is_name else self._file(place, path)), attribute

    def _path(self, place: str) -> Path:
        """A place as a path, a module's too: as a folder it deserves another message."""
        path = self.directory / os.path.expanduser(place)  # noqa: PTH111 - Path.expanduser() raises
        try:
            path.stat()
        except FileNotFoundError:
            return path
        except (OSError, ValueError) as error:  # no permission, too long, a null character
            what = error.strerror if isinstance(error, OSError) else None
            raise self._error("K3C-061", found=what or str(error), path=place) from None
        return path

    def _file(self, place: str, path: Path) -> Path:
        """The file that a target names."""
        if path.is_file():
            if path.suffix != ".py":
                raise self._error(
                    "K3C-067", found=Text("the file {path}", path=path.name), accepted="a .py file"
                )
            return path.resolve()
        near = _near(path.name, _names_in(path.parent))
        folder = path.parent if path.parent.is_dir() else f"{path.parent}, which does not exist"
        raise self._error(
            "K3C-061",
            found=Text("no {name} in {owner}", name=path.name, owner=str(folder)),
            accepted=_choices(str(Path(place).with_name(name)) for name in near) or None,
            fix=_did_you_mean(self.target, place, str(Path(place).with_name(near[0])))
            if near
            else None,
            path=place,
        )

    def _import(self, source: str | Path) -> ModuleType:
        """Import a module by name or a file, telling the user's errors from a missing module."""
        try:
            return importlib.import_module(source) if isinstance(source, str) else load_file(source)
        except ModuleNotFoundError as error:
            if isinstance(source, str) and _is_missing(source, error.name):
                self._missing_module(source, error.name or source)
            self._import_failed(error)
        except BaseException as error:  # noqa: BLE001 - sys.exit() in an import is the user's too
            self._import_failed(error)

    def _missing_module(self, module: str, missing: str) -> NoReturn:
        """There is no such module."""
        parent, _, name = missing.rpartition(".")
        folder = self.directory / Path(*parent.split("."))
        near = _near(name, (Path(n).stem for n in _names_in(folder) if _is_module(folder / n)))
        suggested = [f"{parent}.{n}" if parent else n for n in near]
        raise self._error(
            "K3C-062",
            found=Text(
                "no module named {name}, neither in {folder} nor installed",
                name=repr(missing),
                folder=str(self.directory),
            ),
            accepted=_choices(suggested) or FORMS,
            fix=_did_you_mean(self.target, module, module.replace(missing, suggested[0], 1))
            if suggested
            else None,
            module=missing,
        )

    def _import_failed(self, error: BaseException) -> NoReturn:
        """The user's module raised while it was imported."""
        raise self._error(
            "K3C-068" if classify(error) == "exit" else "K3C-063",
            found=one_line(error),
            detail=trimmed(error),
            error=one_line(error),
        )

    def _attribute(self, module: ModuleType, path: str) -> Any:
        """Follow ``a.b.c`` from the module."""
        holder: Any = module
        walked: list[str] = []
        for name in path.split("."):
            try:
                holder = getattr(holder, name)
            except AttributeError:
                owner = ".".join([_shown(module), *walked])
                near = _near(name, (n for n in dir(holder) if not n.startswith("__")))
                better = ".".join([*walked, near[0]]) if near else ""
                names = near or (_callables(module) if not walked else [])
                raise self._error(
                    "K3C-064",
                    found=Text("no {name} in {owner}", name=repr(name), owner=str(owner)),
                    accepted=_choices(names) or None,
                    fix=_did_you_mean(self.target, path, better) if near else None,
                    name=name,
                ) from None
            except BaseException as error:  # noqa: BLE001 - a module's __getattr__ is user code
                self._import_failed(error)
            walked.append(name)
        return holder

    def _error(
        self,
        code: str,
        *,
        found: str | None = None,
        accepted: str | None = None,
        fix: str | None = None,
        detail: str | None = None,
        **values: str,
    ) -> UsageError:
        """The usage error of a code."""
        values["target"] = self.target
        return UsageError(
            code=code,
            what=hints.title(code, values=values),
            where=self.where,
            found=found,
            accepted=accepted,
            fix=fix or hints.fix(code, values=values),
            detail=detail,
        )


def _is_missing(module: str, missing: str | None) -> bool:
    """Whether the module itself is what is missing, not something that it imports."""
    return missing is not None and (module == missing or module.startswith(f"{missing}."))


def _is_dotted_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _is_module(path: Path) -> bool:
    return path.stem.isidentifier() and (path.suffix == ".py" or path.is_dir())


def _functions_in(path: Path) -> list[str]:
    """Names of a file's top-level functions, without running it."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def _callables(module: ModuleType) -> list[str]:
    """A module's own public callables."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", None) == module.__name__
    ]


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


def _near(name: str, names: Iterable[str]) -> list[str]:
    """The names that somebody may have meant, the likeliest first."""
    by_folded = {candidate.casefold(): candidate for candidate in names}
    wanted = name.casefold()
    if f"{wanted}.py" in by_folded:
        return [by_folded[f"{wanted}.py"]]
    return [by_folded[n] for n in difflib.get_close_matches(wanted, list(by_folded), n=3)]


def _choices(names: Iterable[str]) -> str:
    """``a, b or c``; at most eight."""
    listed = list(names)
    if len(listed) > 8:
        listed = [*listed[:8], f"{len(listed) - 8} more"]
    return " or ".join(filter(None, [", ".join(listed[:-1]), *listed[-1:]]))


def _did_you_mean(target: str, part: str, better: str) -> str:
    """The target with one part replaced: ready to paste."""
    if target.endswith(f":{part}"):
        return f"Write {target.removesuffix(part)}{better}."
    return f"Write {target.replace(part, better, 1)}."


def _shown(module: ModuleType) -> str:
    """A module as the user knows it."""
    if module.__name__.startswith(PRIVATE) and module.__file__:
        return Path(module.__file__).name
    return module.__name__


def _describe(value: Any) -> str:
    """``a list``, ``a module`` ..., never the value itself."""
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
