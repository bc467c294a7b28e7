"""`ramify convert`: a data file in another format."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import options, output
from ramify.cli.options import AsJson, DataFile, FormatOption, Threads, examples, n_jobs

EXAMPLES = examples(
    "ramify convert train.txt train.npz",
    "ramify convert train.txt train.svm",
    "ramify convert notes.jsonl notes.xmc.gz",
    "ramify convert notes.jsonl again.npz --model notes-model",
)


class Target(str, Enum):
    xmc = "xmc"
    libsvm = "libsvm"
    npz = "npz"


_BY_SUFFIX = {".npz": Target.npz, ".svm": Target.libsvm, ".libsvm": Target.libsvm, ".svmlight": Target.libsvm}


def convert(
    data: DataFile,
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="File to write; .gz compresses it.", show_default=False),
    ],
    to: Annotated[Target | None, typer.Option(help="Format to write; from OUT's suffix by default, else xmc.")] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", metavar="DIR", help="Vectorise texts and number labels like this model."),
    ] = None,
    format: FormatOption = None,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Write a data file in another format.

    Texts are vectorised by TF-IDF, or like a model.
    npz files hold the names of labels and features; for other formats they are written beside OUT, one per line.
    """
    from ramify.common import progress
    from ramify.data import save_npz, save_xmc
    from ramify.data.load import BY_SUFFIX
    from ramify.data.text_file import TEXT_FORMATS
    from ramify.data.xmc import save_libsvm

    suffix = Path(out.name.removesuffix(".gz")).suffix.lower()
    if to is None and (suffix == ".json" or BY_SUFFIX.get(suffix) in TEXT_FORMATS):
        raise ValueError(
            f"{out}: {suffix} files hold texts, but convert writes numbers\n"
            "hint: use a name that ends in .txt, .svm or .npz, or give --to"
        )
    if out.exists() and out.samefile(data):
        raise ValueError(f"{out} is the file to read\nhint: write to another one")
    columns = options.columns_of(text_column, label_column, label_separator, None, encoding, delimiter)
    target = to or _BY_SUFFIX.get(suffix, Target.xmc)
    if target is Target.npz and out.suffix == ".gz":
        raise ValueError(f"{out}: npz files are not compressed with gzip\nhint: use a name that ends in .npz")
    written = [out]
    with progress.shown(output.is_watched()):
        with progress.phase(f"reading {data.name}"):
            loaded = _load(data, format, columns, model, n_jobs(threads))
        with progress.phase(f"writing {out.name}"):
            if target is Target.npz:
                save_npz(out, loaded.X, loaded.Y, label_names=loaded.label_names, feature_names=loaded.feature_names)
            else:
                (save_libsvm if target is Target.libsvm else save_xmc)(out, loaded.X, loaded.Y)
                written += _write_names(out, labels=loaded.label_names, features=loaded.feature_names)
    if json:
        facts = {"rows": loaded.n_rows, "features": loaded.n_features, "labels": loaded.n_labels}
        output.print_json(facts | {"format": target.value, "written": [str(path) for path in written]})
        return
    print(
        f"Wrote {output.count(loaded.n_rows, 'row')} x {output.count(loaded.n_labels, 'label')}, "
        f"{output.count(loaded.n_features, 'feature')} to {', '.join(map(str, written))} "
        f"({output.size_in_words(sum(path.stat().st_size for path in written))})."
    )


def _load(path: Path, format: Any, columns: Any, model: Path | None, threads: int) -> Any:
    from ramify.cli.models import known_columns, load_model
    from ramify.cli.sources import Source

    loaded = None if model is None else load_model(model)
    if loaded is not None:
        columns = known_columns(columns, loaded, path)
    source = Source(path)
    with source.errors():
        return _read(source.path, format, columns, loaded, threads)


def _read(path: Path, format: Any, columns: Any, model: Any, threads: int) -> Any:
    from ramify.data import DataError, load_data
    from ramify.data.load import find_data_format
    from ramify.data.text_file import TEXT_FORMATS

    kind = find_data_format(path, columns) if format is None else format.value
    if model is None:
        return load_data(path, kind, n_jobs=threads, columns=columns)
    if kind not in TEXT_FORMATS:
        raise DataError("--model vectorises texts, but these are numbers", path, hint="leave --model out")
    from ramify.cli.data import check_fits

    check_fits(model, [], path)
    return load_data(path, kind, vectorizer=model.vectorizer_, label_names=model.classes_.tolist(), columns=columns)


def _write_names(out: Path, **names: list[str] | None) -> list[Path]:
    from ramify.data.files import replaced_when_complete

    written = []
    for what, entries in names.items():
        if entries is None:
            continue
        path = out.with_name(f"{out.name.removesuffix('.gz')}.{what}.txt")
        with replaced_when_complete(path) as stream:
            stream.write("".join(" ".join(name.split()) + "\n" for name in entries).encode())
        written.append(path)
    return written
