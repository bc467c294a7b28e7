"""`ramify stream`: learn from rows as they arrive, and save the model as it learns."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ramify.cli import options
from ramify.cli.options import AsJson, Ks, Threads, examples, parse_ks

EXAMPLES = examples(
    "ramify stream train.txt --model online-model --save-every 1000",
    "ramify stream train.txt --model online-model --skip-seen",
    "ramify stream test.txt --model online-model --test-first --window 100 --report run.json",
    "cat notes.jsonl | ramify stream --model online-notes --json",
    "ramify stream tickets.csv --model tickets --text-column subject --text-column body --label-column tags",
    "cat train.txt | ramify stream --model online-model --new --format xmc --policy best",
)


class StreamFormat(str, Enum):
    """Formats of lines."""

    xmc = "xmc"
    libsvm = "libsvm"
    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    arrow = "arrow"


def stream(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Option(
            "--model", "-m", metavar="DIR", help="Resume from this checkpoint if it exists.", show_default=False
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]",
            help="CSV, TSV, JSONL, Parquet, Arrow, XMC text or libsvm; gzip is unpacked; - is stdin.",
            show_default=False,
        ),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start a new model and replace an existing one.")] = False,
    save_every: Annotated[
        int, typer.Option("--save-every", metavar="N", min=1, help="Examples between saves.")
    ] = 10_000,
    test_first: Annotated[
        bool, typer.Option("--test-first", help="Progressive validation: test on each example before learning it.")
    ] = False,
    window: Annotated[int, typer.Option(min=1, help="--test-first: examples per line of the table.")] = 1000,
    block: Annotated[int, typer.Option(min=1, help="--test-first: examples tested together.")] = 1,
    k: Ks = "1,3,5",
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="--test-first: write all windows as JSON, for `plot progressive`."),
    ] = None,
    format: Annotated[
        StreamFormat | None,
        typer.Option("--format", help="Format of the lines; from model, name or first line by default."),
    ] = None,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    zero_based: Annotated[bool, typer.Option("--zero-based", help="libsvm: features count from 0, not 1.")] = False,
    multiclass: options.Multiclass = False,
    skip_bad_lines: Annotated[
        bool, typer.Option("--skip-bad-lines", help="Report and count malformed lines instead of stopping.")
    ] = False,
    skip_seen: Annotated[
        bool,
        typer.Option("--skip-seen", help="Skip as many rows as the model has learned."),
    ] = False,
    policy: options.PolicyOption = None,
    arity: options.Arity = None,
    max_leaf: options.MaxLeaf = None,
    alpha: options.Alpha = None,
    fair_share: options.FairShare = None,
    optimizer: options.OptimizerOption = None,
    learning_rate: options.LearningRate = None,
    eps: options.Eps = None,
    decay: options.Decay = None,
    l2: options.L2 = None,
    memory_budget: options.MemoryBudget = None,
    ngrams: options.Ngrams = 1,
    seed: options.Seed = 0,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Learn from rows as they arrive.

    New labels and new features may appear at any time. XMC lines need no header. The model is saved every --save-every
    examples, at the end, and on SIGTERM or Ctrl-C. What is reported as saved is on the disk and survives kill -9.
    """
    from ramify.cli.classifiers import PARAMETERS, new_classifier
    from ramify.cli.lock import only_writer
    from ramify.cli.stream.run import Settings, StreamRun

    is_stdin, stdin = data is None or str(data) == "-", None
    if is_stdin:
        stdin = options.open_stdin(data is not None, "give a file, or lines on stdin (- reads what you type)")
    if report is not None and not test_first:
        raise ValueError("--report writes the results of --test-first: give both")
    given = options.given_flags(context)
    flags = {name: given[name] for name in (*PARAMETERS["OnlinePLTClassifier"], "ngrams") if name in given}
    settings = Settings(
        model=model,
        data=None if is_stdin else data,
        stdin=stdin,
        is_new=new,
        save_every=save_every,
        tests_first=test_first,
        window=window,
        block=block,
        ks=parse_ks(k),
        report=report,
        format=None if format is None else format.value,
        columns=options.columns_of(text_column, label_column, label_separator, None, encoding, delimiter),
        zero_based=zero_based,
        multiclass=multiclass,
        skips_bad_lines=skip_bad_lines,
        skips_seen=skip_seen,
        as_json=json,
        given=set(given),
    )
    classifier = new_classifier("online-plt", flags, seed=seed, threads=threads)
    with only_writer(settings.model):
        code = StreamRun(classifier, settings).run()
    if code:
        raise typer.Exit(code)
