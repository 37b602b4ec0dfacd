"""The families of tasks: a request, and the one right way through it.

Rules: a family sets up files and returns a task; the task's steps run later,
when all files of the conversation are there. Every request has one right
sequence of calls and one right answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import phrasing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from phrasing import Phrasings
    from words import Words
    from world import World

Call: TypeAlias = tuple[str, dict[str, Any]]


class Clash(Exception):
    """Two tasks of a conversation got into each other's way; it has to be drawn again."""


@dataclass(frozen=True)
class Turn:
    """What the assistant does next: calls, or an answer; with what it may think before.

    ``plan`` is thought from strength medium on, ``detail`` from high on,
    ``check`` at xhigh alone.
    """

    calls: tuple[Call, ...] = ()
    answer: str = ""
    plan: str = ""
    detail: str = ""
    check: str = ""

    def thought(self, strength: str) -> str:
        """The reasoning at ``strength``, or ""."""
        depth = ("low", "medium", "high", "xhigh").index(strength)
        return " ".join(part for part in (self.plan, self.detail, self.check)[:depth] if part)


Steps: TypeAlias = "Callable[[], Iterator[Turn]]"


@dataclass(frozen=True)
class Task:
    """A request and the turns that it takes. ``wrong`` is a call that is rejected before them.

    ``writable`` says whether write_file has to be there (True), has to be
    missing (False), or does not matter (None).
    """

    family: str
    request: str
    steps: Steps
    wrong: Call | None = None
    writable: bool | None = None

    @property
    def wrong_turn(self) -> Turn | None:
        """The turn that is rejected, thought as the first of the right ones is."""
        if self.wrong is None:
            return None
        return Turn((self.wrong,), plan=next(iter(self.steps())).plan)


@dataclass(frozen=True)
class Maker:
    """What a family is given: words, the folder, and which phrasings it may use.

    ``more`` adds those that the first stage of training leaves out.
    """

    words: Words
    world: World
    phrasings: Phrasings
    more: bool

    def ask(self, kind: str, **places: str) -> str:
        """A request of ``kind`` with its places filled."""
        found = phrasing.template(self.words.rng, kind, self.phrasings, more=self.more)
        return found.format(**places)

    def chance(self, share: float) -> bool:
        """True in ``share`` of the cases."""
        return self.words.rng.random() < share

    def new_path(self, path: str = "") -> str:
        """A path where no file is yet."""
        while (path := path or self.words.path()) in self.world.files:
            path = ""
        return path

    def file(self, path: str = "", key: str = "") -> tuple[str, str, str]:
        """Makes a file of lines; its path, one of its keys (or ``key``) and that key's line."""
        count = self.words.rng.choice((1, 2, 2, 3, 3, 4))
        keys = self.words.keys(count)
        if key and all(other.split()[0] != key.split(maxsplit=1)[0] for other in keys):
            keys[self.words.rng.randrange(count)] = key
        elif key:
            keys = [key]
        lines = {each: f"{each}: {self.words.value()}" for each in keys}
        path = self.new_path(path)
        end = "\n" if self.chance(0.5) else ""
        self.world.files[path] = "\n".join(lines.values()) + end
        asked = key or self.words.rng.choice(keys)
        return path, asked, lines[asked]


def read(maker: Maker) -> Task:
    """Read a file and answer with the line that was asked for, or with all of it."""
    path, key, line = maker.file()
    if maker.chance(0.15):
        text = maker.world.files[path].strip()
        return Task("read", maker.ask("read_all", path=path), lambda: _read_all(path, text))
    return Task("read", maker.ask("read", path=path, key=key), lambda: _read(path, key, line))


def _read(path: str, key: str, line: str) -> Iterator[Turn]:
    yield Turn((_reads(path),), plan=f"I read {path}.", detail=f"I look for {key}.")
    yield Turn(answer=f"{path} says: {line}", check=f"The line is {line}.")


def _read_all(path: str, text: str) -> Iterator[Turn]:
    yield Turn((_reads(path),), plan=f"I read {path}.")
    yield Turn(answer=f"{path} says:\n{text}")


def _reads(path: str) -> Call:
    return "read_file", {"path": path}


def listing(maker: Maker) -> Task:
    """List a folder."""
    if maker.chance(0.25):
        maker.file(maker.words.file())
        return Task("list", maker.ask("list_here"), lambda: _list(maker.world, "."))
    folder = maker.words.folder()
    for _ in range(maker.words.rng.choice((1, 2, 3, 3, 4))):
        inside = "" if maker.chance(0.85) else f"{maker.words.name()}/"
        maker.file(f"{folder}/{inside}{maker.words.file()}")
    return Task("list", maker.ask("list", folder=folder), lambda: _list(maker.world, folder))


def _list(world: World, folder: str) -> Iterator[Turn]:
    name = "this folder" if folder == "." else folder
    yield Turn((("list_files", {"path": folder}),), plan=f"I list {name}.")
    yield Turn(answer=f"The files in {name} are:\n{world.list_files(folder)}")


def search(maker: Maker) -> Task:
    """Search; the answer names the file of the first hit."""
    text = maker.words.word()
    if maker.chance(0.3):
        text += " " + maker.words.word()
    for _ in range(0 if maker.chance(0.1) else maker.words.rng.choice((1, 2, 2, 3))):
        _plant(maker, text)
    return Task("search", maker.ask("search", text=text), lambda: _search(maker.world, text))


def _plant(maker: Maker, text: str) -> None:
    path, _, line = maker.file()
    content = maker.world.files[path]
    planted = f"{text}: {maker.words.value()}" if maker.chance(0.3) else f"{line} {text}"
    maker.world.files[path] = content.replace(line, planted, 1)


def _search(world: World, text: str) -> Iterator[Turn]:
    yield Turn((("search", {"text": text}),), plan=f"I search for {text}.")
    found = world.search(text)
    path = found.split(":")[0]
    if found == "(no match)":
        yield Turn(answer=f"No file has {text}.", check="There is no hit.")
    else:
        yield Turn(answer=f"The first hit is in {path}.", check=f"I take {path}.")


def write(maker: Maker) -> Task:
    """Write a short file."""
    path, text = maker.new_path(), maker.words.text()
    request = maker.ask("write", path=path, text=text)
    return Task("write", request, lambda: _write(path, text), writable=True)


def _write(path: str, text: str) -> Iterator[Turn]:
    call = "write_file", {"path": path, "content": text}
    yield Turn((call,), plan=f"I write {path}.", detail=f"It says {text}.")
    yield Turn(answer=f"Wrote {len(text.encode())} bytes to {path}.")


def calculation(maker: Maker) -> Task:
    """Add or multiply with the tool."""
    kind = maker.words.rng.choice(("sum", "product", "formula"))
    if kind == "formula":
        formula = _formula(maker)
        return Task("calculate", maker.ask(kind, formula=formula), lambda: _work_out(formula))
    a, b = maker.words.number(), maker.words.number()
    formula = f"{a} {'+' if kind == 'sum' else '*'} {b}"
    return Task("calculate", maker.ask(kind, a=a, b=b), lambda: _work_out(formula))


def _formula(maker: Maker) -> str:
    numbers = [maker.words.number() for _ in range(3 if maker.chance(0.2) else 2)]
    gap = " " if maker.chance(0.7) else ""
    formula = numbers[0]
    for number in numbers[1:]:
        formula += f"{gap}{maker.words.rng.choice('++**-')}{gap}{number}"
    return formula


def _work_out(formula: str) -> Iterator[Turn]:
    yield Turn((_works_out(formula),), plan=f"I work out {formula}.")
    yield Turn(answer=_equation(formula))


def _works_out(formula: str) -> Call:
    return "calculate", {"expression": formula}


def _equation(formula: str) -> str:
    return f"{formula} = {eval(formula)}"  # noqa: S307 - made above, from digits and + - *


def chain(maker: Maker) -> Task:
    """List a folder, pick the file by a word of its name, read it, answer."""
    folder = maker.words.folder()
    topics = maker.words.keys(maker.words.rng.choice((1, 2, 2, 3, 3)))
    topics = [topic.split()[0] for topic in topics]
    paths = [_file_about(maker, folder, topic) for topic in topics]
    path, topic = paths[0], topics[0]
    files = [maker.file(each) for each in paths]
    _, key, line = files[0]
    request = maker.ask("chain", folder=folder, topic=topic, key=key)
    return Task("chain", request, lambda: _chain(folder, topic, path, key, line))


def _file_about(maker: Maker, folder: str, topic: str) -> str:
    ending = maker.words.file().rpartition(".")[2]
    draw = maker.words.rng.random()
    if draw < 0.6:
        return f"{folder}/{topic}.{ending}"
    other = maker.words.word() if draw < 0.85 else maker.words.number()
    return f"{folder}/{topic}{maker.words.rng.choice('-_')}{other}.{ending}"


def _chain(folder: str, topic: str, path: str, key: str, line: str) -> Iterator[Turn]:
    call = "list_files", {"path": folder}
    yield Turn((call,), plan=f"I list {folder}.", detail=f"I look for {topic}.")
    yield from _read(path, key, line)


def parallel(maker: Maker) -> Task:
    """Two calls in one turn: two files, or two formulas."""
    if maker.chance(0.3):
        return _two_formulas(maker)
    path, key, line = maker.file()
    one = maker.chance(0.6)
    path2, key2, line2 = maker.file(key=key if one else "")
    kind = "parallel_one" if one else "parallel_two"
    request = maker.ask(kind, path=path, path2=path2, key=key, key2=key2)
    keys = key if one else f"{key} and {key2}"
    return Task("parallel", request, lambda: _both(path, path2, keys, line, line2))


def _both(path: str, path2: str, keys: str, line: str, line2: str) -> Iterator[Turn]:
    calls = _reads(path), _reads(path2)
    yield Turn(calls, plan=f"I read {path} and {path2}.", detail=f"I look for {keys}.")
    yield Turn(answer=f"{path} says: {line}\n{path2} says: {line2}", check=f"The first is {line}.")


def _two_formulas(maker: Maker) -> Task:
    one, two = _formula(maker), _formula(maker)
    request = maker.ask("parallel_sums", formula=one, formula2=two)

    def steps() -> Iterator[Turn]:
        yield Turn((_works_out(one), _works_out(two)), plan=f"I work out {one} and {two}.")
        yield Turn(answer=f"{_equation(one)}\n{_equation(two)}")

    return Task("parallel", request, steps)


def error(maker: Maker) -> Task:
    """The path is misspelt; the tool's error names the nearest, which is right."""
    path, key, line = maker.file()
    folder, slash, _ = path.rpartition("/")
    for _ in range(maker.words.rng.choice((0, 1, 2))):
        maker.file(f"{folder}{slash}{maker.words.file()}")
    wrong = _misspelt(maker, path)
    request = maker.ask("read", path=wrong, key=key)

    def steps() -> Iterator[Turn]:
        yield Turn((_reads(wrong),), plan=f"I read {wrong}.", detail=f"I look for {key}.")
        if not _nearest_is(maker, wrong, path):
            raise Clash
        yield Turn((_reads(path),), plan=f"It is {path}.")
        yield Turn(answer=f"{path} says: {line}", check=f"The line is {line}.")

    return Task("error", request, steps)


def _misspelt(maker: Maker, path: str) -> str:
    """``path`` with two letters of its name's stem changed, doubled, swapped or dropped."""
    folder, slash, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    rng = maker.words.rng
    while True:
        at = rng.randrange(len(stem))
        letter = rng.choice("abcdefghijklmnopqrstuvwxyz")
        changed = rng.choice((
            stem[:at] + stem[at + 1 :], stem[:at] + letter + stem[at + 1 :],
            stem[:at] + letter + stem[at:], stem[:at] + stem[at : at + 2][::-1] + stem[at + 2 :],
        ))  # fmt: skip
        wrong = f"{folder}{slash}{changed}.{ending}"
        if changed and wrong not in maker.world.files and _nearest_is(maker, wrong, path):
            return wrong


def _nearest_is(maker: Maker, wrong: str, path: str) -> bool:
    return f"there are {path}," in maker.world.run("read_file", {"path": wrong}) + ","


WRONG_NAMES: Final = {
    "read_file": "readfile open_file cat file_read get_file ReadFile open show_file".split(),
    "list_files": "ls listfiles list_dir dir show_files ListFiles get_files folder".split(),
    "search": "grep find search_files search_text Search find_text lookup".split(),
    "calculate": "calc compute calculator eval add multiply math".split(),
}
WRONG_PARAMETERS: Final = {
    "read_file": "file filename name file_path".split(),
    "list_files": "folder dir directory name".split(),
    "search": "query pattern word term".split(),
    "calculate": "expr input formula sum".split(),
}


def rejected(maker: Maker) -> Task:
    """The first call was wrong and was rejected; the feedback says how, and it is made right."""
    base = maker.words.rng.choice((read, read, listing, search, calculation))(maker)
    first = next(iter(base.steps()))
    name, arguments = first.calls[0]
    if maker.chance(0.6):
        wrong = maker.words.rng.choice(WRONG_NAMES[name]), arguments
    else:
        values = list(arguments.values())
        wrong = name, {maker.words.rng.choice(WRONG_PARAMETERS[name]): values[0]}

    def steps() -> Iterator[Turn]:
        turns = base.steps()
        next(turns)
        yield Turn(first.calls, plan=f"I use {name}.")
        yield from turns

    return Task("rejected", base.request, steps, wrong)


CANNOT: Final = "None of my tools can do that."


def none(maker: Maker) -> Task:
    """No tool fits."""
    words = maker.words
    request = maker.ask(
        "none", word=words.word(), text=words.text(), number=words.number(), path=words.path()
    )
    return Task("none", request, _refuse)


def _refuse() -> Iterator[Turn]:
    yield Turn(answer=CANNOT, plan="No tool fits.")


def unwritable(maker: Maker) -> Task:
    """Something to write where there is no tool that writes."""
    return Task("none", write(maker).request, _refuse, writable=False)


FIXED: Final = {
    "hello": "Hello. What can I do?",
    "thanks": "You are welcome.",
    "who": "I am nano, a very small model.",
    "can": "I list, read, search and write files, and I calculate.",
}


def chat(maker: Maker) -> Task:
    """Answer without a tool."""
    if maker.chance(0.25):
        kind = maker.words.rng.choice(list(FIXED))
        return _told(maker.ask(kind), FIXED[kind])
    text = maker.words.text()
    return _told(maker.ask("say", text=text), text)


def _told(request: str, answer: str) -> Task:
    return Task("chat", request, lambda: iter([Turn(answer=answer, plan="No tool is needed.")]))


FAMILIES: Final[dict[str, Callable[[Maker], Task]]] = {
    "list": listing, "read": read, "search": search, "write": write, "calculate": calculation,
    "chain": chain, "parallel": parallel, "error": error, "rejected": rejected, "none": none,
    "chat": chat,
}  # fmt: skip
