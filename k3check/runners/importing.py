"""Import a file so that its own imports work, as they do for the user."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

#: How a module is named whose own name is taken.
PRIVATE = "_k3check_target_"

_RELATIVE_IMPORT = re.compile(r"^\s*from\s+\.", re.MULTILINE)
_loaded_files: dict[Path, ModuleType] = {}


def load_file(path: Path) -> ModuleType:
    """Load a file, under the name that its own imports and other processes would use.

    Inside a package (folders with ``__init__.py``) that is its dotted name, so that its relative
    imports work; with relative imports but without ``__init__.py`` the dotted name from an
    importable folder; else its plain name, or a private one where that is taken.
    """
    if path in _loaded_files:
        return _loaded_files[path]
    root = path.parent
    while (root / "__init__.py").is_file() and root.parent != root:
        root = root.parent
    make_importable(path.parent)
    if root == path.parent and _has_relative_imports(path):
        root = next((Path(p) for p in sys.path if p and Path(p) in root.parents), root)
    make_importable(root)
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    if not _finds(name, path, root):
        name = f"{PRIVATE}{len(_loaded_files)}_{path.stem}"
    _loaded_files[path] = module = _import_file(name, path)
    return module


def _import_file(name: str, path: Path) -> ModuleType:
    """Import a file under a name, through the import system where it finds that very file."""
    if not name.startswith(PRIVATE):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a .py file always has a loader"
    assert spec.loader is not None, "a .py file always has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses, pickle and triton look a function's module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _finds(name: str, path: Path, root: Path) -> bool:
    """Whether importing ``name`` would load ``path``; packages on the way stay unimported."""
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    if name in sys.modules:
        file = getattr(sys.modules[name], "__file__", None)
        return file is not None and Path(file).resolve() == path
    if "." in name:
        # The root is importable and holds it, unless another package of that name came first.
        top = name.partition(".")[0]
        return top not in sys.modules or str(root / top) in getattr(
            sys.modules[top], "__path__", ()
        )
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin).resolve() == path


def make_importable(folder: Path) -> None:
    """Put a folder first on the path, as Python does with a script's."""
    text = str(folder)
    if text not in sys.path:
        sys.path.insert(0, text)
        importlib.invalidate_caches()


def _has_relative_imports(path: Path) -> bool:
    return bool(_RELATIVE_IMPORT.search(path.read_text("utf-8", errors="replace")))
