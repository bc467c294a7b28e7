"""Rewrite the outputs that documents show with those of today; read the difference before you commit it.

    PYTHONPATH=tests .venv/bin/python tests/docs/refresh.py README.md docs/plt.md

Outputs that still match, up to times and sizes, stay as they are, and so do those with an ellipsis.
"""

from __future__ import annotations

import doctest
import os
import sys
import tempfile
from pathlib import Path

from test_docs import OPTIONS, TIME_OR_SIZE, blocks, make_command, run_in_shell, shell_commands


def is_current(want: str, got: str) -> bool:
    """Whether the document shows this output, up to times and sizes."""
    want, got = (TIME_OR_SIZE.sub(r"# \2", text.strip()) + "\n" for text in (want, got))
    return doctest.OutputChecker().check_output(want, got, OPTIONS)


class Recorder(doctest.DocTestRunner):
    """Keeps what each example printed."""

    def __init__(self) -> None:
        super().__init__(verbose=False, optionflags=OPTIONS)
        self.printed: dict[int, str] = {}

    def report_success(self, out, test, example, got):
        self.printed[example.lineno] = got

    def report_failure(self, out, test, example, got):
        self.printed[example.lineno] = got

    def report_unexpected_exception(self, out, test, example, exc_info):
        raise exc_info[1]


def refreshed_python(content: str, variables: dict[str, object], place: str) -> str:
    test = doctest.DocTestParser().get_doctest(content, variables, place, place, 0)
    test.globs = variables
    recorder = Recorder()
    recorder.run(test, out=lambda text: None, clear_globs=False)
    lines = content.splitlines(keepends=True)
    for example in reversed(test.examples):
        if example.exc_msg is None and not is_current(example.want, recorder.printed[example.lineno]):
            first = example.lineno + example.source.count("\n")
            lines[first : first + example.want.count("\n")] = [recorder.printed[example.lineno]]
    return "".join(lines)


def refreshed_shell(content: str, folder: Path, commands: Path) -> str:
    for command, expected in shell_commands(content):
        got = run_in_shell(command, folder, commands)
        if got is not None and not is_current(expected, got):
            before = f"$ {command}\n{expected}"
            content = content.replace(before, f"$ {command}\n{got.rstrip()}\n" + "\n" * before.endswith("\n\n"))
    return content


def refresh(document: Path) -> None:
    """Run a document from top to bottom in an empty folder and rewrite what it prints."""
    text = document.read_text(encoding="utf-8")
    variables: dict[str, object] = {"__name__": "document"}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as commands:
        make_command(Path(commands))
        os.chdir(folder)
        for language, line, content in blocks(document):
            new = content
            if language == "pycon":
                new = refreshed_python(content, variables, f"{document.name}:{line}")
            elif language == "console":
                new = refreshed_shell(content, Path(folder), Path(commands))
            text = text.replace(content, new)
        os.chdir(document.parent)
    document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in [Path(argument).resolve() for argument in sys.argv[1:]]:
        refresh(name)
