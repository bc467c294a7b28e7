"""Write docs/parameters.md from the signatures and docstrings of the classifiers.

python docs/parameters.py           # write the page
python docs/parameters.py --check   # exit with 1 if the page is out of date
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import ramify

PAGE = Path(__file__).with_suffix(".md")
# Columns of the table; a classifier that is not listed here comes last under its own name.
SHORT = {
    "PLTClassifier": "PLT",
    "OnlinePLTClassifier": "Online PLT",
    "TreeSoftmaxClassifier": "Softmax",
    "FastXMLClassifier": "FastXML",
    "SpectralTreeClassifier": "Spectral",
    "MemoryTreeClassifier": "Memory tree",
    "LOMTreeClassifier": "LOMtree",
    "FilterTreeClassifier": "Filter tree",
    "NearestRowsClassifier": "Nearest rows",
    "MixtureClassifier": "Mixture",
    "ThresholdClassifier": "Threshold",
}
# Objects that constructors take, listed after the classifiers.
COMPONENTS = (
    ("ramify.models.plt", "PLTSolver"),
    ("ramify.models.spectral", "CandidateScorer"),
    ("ramify.models.spectral.parameters", "TreeOptions"),
    ("ramify.optimizers", "AdaGrad"),
    ("ramify.optimizers", "FOBOS"),
    ("ramify.optimizers", "SGD"),
    ("ramify.data", "WordNgramVectorizer"),
)
# Parameters that mean the same everywhere.
COMMON = {
    "n_epochs": "Passes over the training rows.",
    "n_jobs": "Threads; None is one, -1 is one per core. The result depends on it only with `hogwild=True`.",
    "random_state": "Seed of everything random: None, an integer or a generator.",
    "shuffle": "Visit the rows in random order in each pass.",
    "vectorizer": "Turns texts into features; None uses the default of the classifier.",
    "verbose": "Show progress on stderr.",
}
# For parameters whose docstring gives only their type.
FALLBACK = {
    "eps": "Added to the root of the summed squared gradients; None is the classifier's default.",
    "hash_bits": "Binary logarithm of the size of the hash table.",
    "learning_rate": "Step size; None is the classifier's default.",
    "lowercase": "Convert texts to lower case.",
    "rank": "Dimensions of the space that the labels share.",
}
WHOLE = ("optimizer",)  # described in full: the defaults differ between classifiers
HEAD = """# Parameters

Every parameter of every classifier, with its default; an empty cell means that the classifier does not have the
parameter. `python docs/parameters.py` writes this page from the signatures and docstrings.
"""
ENTRY = re.compile(r"^(\w+(?:, \w+)*)(?: : .*)?$")
SHORT_ENTRY = re.compile(r"^(\w+(?:, \w+)*): ", re.MULTILINE)  # of a docstring without sections


def classifiers() -> dict[str, Any]:
    """Column -> class, in the order of SHORT."""
    names = [name for name in ramify.__all__ if name.endswith("Classifier")]
    names.sort(key=lambda name: (list(SHORT).index(name) if name in SHORT else len(SHORT), name))
    return {SHORT.get(name, name): getattr(ramify, name) for name in names}


def components() -> dict[str, Any]:
    found = {}
    for module, name in COMPONENTS:
        try:
            found[name] = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    return found


def defaults(cls: Any) -> dict[str, Any]:
    """Parameter -> default of the constructor."""
    given = inspect.signature(cls).parameters.values()
    return {one.name: one.default for one in given if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}


def described(cls: Any) -> dict[str, str]:
    """Parameter -> first sentence of its description in the docstring."""
    text = inspect.cleandoc(cls.__doc__ or "").partition("\n>>> ")[0]
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}$|\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None:
        parts = SHORT_ENTRY.split(text)[1:]
        entries = zip(parts[::2], parts[1::2], strict=True)
        return {name: shortened(name, said) for names, said in entries for name in names.split(", ")}
    meanings: dict[str, str] = {}
    names: list[str] = []
    lines: list[str] = []
    kind = ""  # stands in for a description: loss : "squared" or "logistic"
    for line in [*section[1].splitlines(), "end"]:
        if entry := ENTRY.match(line):
            meanings |= {name: shortened(name, " ".join(lines) or kind) for name in names}
            kind = f"{line.partition(' : ')[2]}." if '"' in line else ""
            names, lines = entry[1].split(", "), []
        elif line.strip():
            lines.append(line.strip())
    return {name: meaning for name, meaning in meanings.items() if name in defaults(cls)}


def shortened(name: str, text: str) -> str:
    """The first sentence of a description, or all of it."""
    text = " ".join(text.split()) or FALLBACK.get(name, "")
    if name not in WHOLE:
        text = re.split(r"(?<=[a-z)`]\.)\s+(?=[A-Z\"`(\d])", text, maxsplit=1)[0]
    return text[:1].upper() + text[1:]


def shown(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    text = repr(value)
    if isinstance(value, tuple) and len(text) > 20:
        text = f"({value[0]!r}, …, {value[-1]!r})"
    elif isinstance(value, str):
        text = f'"{value}"'
    return f"`{text}`"


def escaped(text: str) -> str:
    return text.replace("|", "\\|")


def meaning_of(name: str, columns: dict[str, Any]) -> str:
    """One line; where classifiers differ, one per wording, with their names."""
    if name in COMMON:
        return COMMON[name]
    wordings: dict[str, list[str]] = {}
    for column, cls in columns.items():
        if name in defaults(cls) and (text := described(cls).get(name)):
            wordings.setdefault(text, []).append(column)
    if len(wordings) == 1:
        return next(iter(wordings))
    return "<br>".join(f"*{', '.join(users)}*: {text}" for text, users in wordings.items())


def table(columns: dict[str, Any], heading: str) -> list[str]:
    """One row per parameter, in alphabetical order."""
    names = sorted({name for cls in columns.values() for name in defaults(cls)}, key=lambda name: (name.lower(), name))
    lines = [f"| {heading} | {' | '.join(columns)} | meaning |", "|---" * (len(columns) + 2) + "|"]
    for name in names:
        cells = [shown(defaults(cls)[name]) if name in defaults(cls) else "" for cls in columns.values()]
        lines.append(f"| `{name}` | {' | '.join(map(escaped, cells))} | {escaped(meaning_of(name, columns))} |")
    return lines


def page() -> str:
    lines = [HEAD, *table(classifiers(), "parameter")]
    for name, cls in components().items():
        lines += ["", f"## {name}", "", *table({"default": cls}, "parameter")]
    return "\n".join(lines) + "\n"


def main() -> int:
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") != page():
            print(f"error: {PAGE.name} is out of date\nhint: python docs/parameters.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
