"""The files of the project, for tests that read them."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
APP = ROOT / "app"
# What a checkout may hold besides the project, and what nobody here wrote.
NOT_OURS = {
    ".git",
    ".venv",
    ".venv-aun",
    "var",
    "shots",
    "node_modules",
    "__pycache__",
    "interop",
    "vendor",
}


def files(folder: Path, pattern: str) -> Iterator[Path]:
    """The project's own files below `folder`, in order."""
    for path in sorted(folder.rglob(pattern)):
        inside = path.relative_to(ROOT).parts
        if path.is_file() and not NOT_OURS & set(inside) and not inside[0].endswith("_cache"):
            yield path


def parsed(*folders: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Each Python file of `folders`, with its syntax tree."""
    for folder in folders:
        for path in files(folder, "*.py"):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def text_files() -> Iterator[tuple[Path, str]]:
    """Every text file of the project."""
    for path in files(ROOT, "*"):
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def import_models() -> None:
    """Make every table known to the metadata."""
    for path in files(APP, "*models.py"):
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
