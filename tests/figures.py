"""House figures: how large, how typed and how documented the code is.

Rules: standard library only, reads source files and imports none of them. A
person judges the figures; the two hard limits below fail the run.

Counting: a file has all its lines; a function runs from its ``def`` to its end
without its docstring; nested functions count as their own too; "typed" is the
share of functions whose parameters and result are all annotated; "docs" the
share of public classes and functions with a docstring (a property's setter or
an overload needs none); "comment" the share of non-blank lines that are only a
comment; "tests" the lines of tests for a line of code, without the benchmark
and this script.
"""

from __future__ import annotations

import ast
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE = 500
MAX_FUNCTION = 60

Function = ast.FunctionDef | ast.AsyncFunctionDef
HEAD = (
    f"{'part':<16}{'files':>6}{'lines':>7}  {'file med/max':>12}  {'function med/p90/max':>20}"
    f"{'typed':>8}{'docs':>7}{'comment':>9}{'tests':>7}"
)


@dataclass
class Figures:
    """What is counted over one part of the tree."""

    name: str
    files: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    typed: list[bool] = field(default_factory=list)
    documented: list[bool] = field(default_factory=list)
    comments: int = 0
    filled: int = 0
    over: list[str] = field(default_factory=list)

    def add(self, path: Path) -> None:
        """Count one file in."""
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        where = path.relative_to(ROOT).as_posix()
        self.files.append(len(lines))
        if len(lines) > MAX_FILE:
            self.over.append(f"{where}: {len(lines)} lines, at most {MAX_FILE}")
        stripped = [line.strip() for line in lines if line.strip()]
        self.filled += len(stripped)
        self.comments += sum(line.startswith("#") for line in stripped)
        tree = ast.parse(text)
        self.documented += [ast.get_docstring(node) is not None for node in public(tree)]
        for node in ast.walk(tree):
            if isinstance(node, Function):
                self.add_function(node, where)

    def add_function(self, node: Function, where: str) -> None:
        """Count one function in."""
        size = length(node)
        self.functions.append(size)
        self.typed.append(is_typed(node))
        if size > MAX_FUNCTION:
            place = f"{where}:{node.lineno}: {node.name}"
            self.over.append(f"{place} has {size} lines, at most {MAX_FUNCTION}")

    def row(self, tests: int | None = None) -> str:
        """One line of the table; ``tests`` is the number of lines that test this part."""
        files, functions = sorted(self.files), sorted(self.functions) or [0]
        file_size = f"{statistics.median(files):.0f} / {files[-1]}"
        p90 = functions[min(len(functions) - 1, len(functions) * 9 // 10)]
        function_size = f"{statistics.median(functions):.0f} / {p90} / {functions[-1]}"
        ratio = "" if tests is None else f"{tests / max(1, sum(files)):.2f}"
        return (
            f"{self.name:<16}{len(files):>6}{sum(files):>7}  {file_size:>12}  {function_size:>20}"
            f"{share(self.typed):>8}{share(self.documented):>7}"
            f"{self.comments / max(1, self.filled):>9.0%}{ratio:>7}"
        )


def share(flags: list[bool]) -> str:
    """A share as a percentage, rounded down so that 100 % means all."""
    return f"{100 * sum(flags) // len(flags)}%" if flags else "-"


def length(node: Function) -> int:
    """Lines of a function without decorators and docstring."""
    size = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node) is not None:
        doc = node.body[0]
        size -= (doc.end_lineno or doc.lineno) - doc.lineno + 1
    return size


def is_typed(node: Function) -> bool:
    """Whether every parameter (but ``self`` and ``cls``) and the result are annotated."""
    spec = node.args
    named = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    rest = [arg for arg in (spec.vararg, spec.kwarg) if arg is not None]
    if named and named[0].arg in ("self", "cls"):
        named = named[1:]
    return node.returns is not None and all(arg.annotation for arg in [*named, *rest])


def public(tree: ast.Module | ast.ClassDef) -> Iterator[Function | ast.ClassDef]:
    """Yield the public classes, functions and methods of a module."""
    for node in tree.body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not any(is_secondary(mark) for mark in node.decorator_list):
            yield node
        if isinstance(node, ast.ClassDef):
            yield from public(node)


def is_secondary(mark: ast.expr) -> bool:
    """Whether a decorator marks one more form of a name that is documented elsewhere."""
    name = mark.attr if isinstance(mark, ast.Attribute) else getattr(mark, "id", "")
    return name in ("setter", "deleter", "overload", "override")


def is_tool(path: Path) -> bool:
    """Whether a file under tests tests nothing: the benchmark and this script."""
    return path == Path(__file__).resolve() or (ROOT / "tests/bench") in path.parents


def gather(name: str, paths: list[Path]) -> Figures:
    """Figures over some files."""
    figures = Figures(name)
    for path in paths:
        figures.add(path)
    return figures


def parts(root: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield the top-level modules of a tree as one part, then each folder that holds code."""
    yield root.name, sorted(root.glob("*.py"))
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        yield f"{root.name}/{folder.name}", sorted(folder.rglob("*.py"))


def main() -> int:
    """Print the table; 1 if a hard limit is broken."""
    code, tests = sorted((ROOT / "atem").rglob("*.py")), sorted((ROOT / "tests").rglob("*.py"))
    proof = gather("tests", [path for path in tests if not is_tool(path)])
    tested = {
        name.removeprefix("tests/"): gather(name, paths)
        for name, paths in parts(ROOT / "tests")
        if paths
    }
    print(HEAD)
    for name, paths in parts(ROOT / "atem"):
        if paths:
            beside = tested.get(name.removeprefix("atem/"))
            print(gather(name, paths).row(sum(beside.files) if beside else None))
    every, beside_code = gather("all of atem", code), gather("all of tests", tests)
    print(every.row(sum(proof.files)))
    for figures in [*tested.values(), beside_code]:
        print(figures.row())
    broken = every.over + beside_code.over
    print(*broken, sep="\n", end="\n" if broken else "")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
