"""`ramify stream`: learn from rows as they come, and keep what is learned."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ramify.cli import online
from ramify.cli.online import Learner, Policy
from ramify.cli.options import AsJson, Ks, Threads, examples, n_jobs, parse_ks

EXAMPLES = examples(
    "ramify stream train.txt --model online-model --save-every 1000",
    "ramify stream train.txt --model online-model --skip-seen",
    "ramify stream test.txt --model online-model --test-first --window 100 --report run.json",
    "cat notes.jsonl | ramify stream --model online-notes --json",
    "cat train.txt | ramify stream --model online-model --new --format xmc --policy best",
)


class StreamFormat(str, Enum):
    """What lines can be."""

    xmc = "xmc"
    libsvm = "libsvm"
    jsonl = "jsonl"


def stream(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Option(
            "--model", "-m", metavar="DIR", help="Checkpoint: gone on with if it is there.", show_default=False
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]", help="XMC text, libsvm or JSONL, gzip or not; - is stdin.", show_default=False
        ),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Begin anew, replacing a model that is there.")] = False,
    save_every: Annotated[
        int, typer.Option("--save-every", metavar="N", min=1, help="Examples between saves.")
    ] = 10_000,
    test_first: Annotated[
        bool, typer.Option("--test-first", help="Progressive validation: test on each example before it is learned.")
    ] = False,
    window: Annotated[int, typer.Option(min=1, help="Test first: examples of a line of the table.")] = 1000,
    block: Annotated[int, typer.Option(min=1, help="Test first: examples tested together.")] = 1,
    k: Ks = "1,3,5",
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Test first: write all windows as JSON, for `plot progressive`.")
    ] = None,
    format: Annotated[
        StreamFormat | None, typer.Option("--format", help="By default the model, the name or the first line tells.")
    ] = None,
    zero_based: Annotated[bool, typer.Option("--zero-based", help="libsvm: features count from 0, not 1.")] = False,
    multiclass: Annotated[
        bool, typer.Option("--multiclass", help="Each row has exactly one label: probabilities sum to one.")
    ] = False,
    skip_bad_lines: Annotated[
        bool, typer.Option("--skip-bad-lines", help="Tell and count lines that cannot be read, and go on.")
    ] = False,
    skip_seen: Annotated[
        bool, typer.Option("--skip-seen", help="The input begins where the model began: leave out what it has learned.")
    ] = False,
    policy: online.PolicyOption = Policy.fair,
    b: online.Arity = None,
    b_max: online.PreLeafArity = None,
    alpha: online.Alpha = None,
    fair_share: online.FairShare = None,
    learner: online.LearnerOption = Learner.adagrad,
    learning_rate: online.LearningRate = None,
    eps: online.Eps = None,
    decay: online.Decay = None,
    l2: online.L2 = None,
    memory_budget: online.MemoryBudget = None,
    ngrams: online.Ngrams = 1,
    seed: online.Seed = 0,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Learn from rows as they come.

    New labels and new features are welcome at any time. XMC lines need no header. The model is saved every
    --save-every examples, at the end, and on SIGTERM or Ctrl-C; what is reported as saved is on the disk, and survives
    kill -9.
    """
    from ramify.cli.stream.run import Settings, StreamRun
    from ramify.models.online_plt.classifier import OnlinePLTClassifier

    if data is not None and str(data) == "-":
        data = None
    elif data is None and sys.stdin.isatty():
        raise ValueError("nothing to learn from: give a file, or lines on stdin (- reads what you type)")
    if report is not None and not test_first:
        raise ValueError("--report tells what --test-first finds: give both")
    classifier = OnlinePLTClassifier(
        vectorizer=online.stream_vectorizer(ngrams),
        n_jobs=n_jobs(threads),
        random_state=seed,
        **online.settings(context),
    )
    classifier._check_parameters()
    settings = Settings(
        model=model,
        data=data,
        is_new=new,
        save_every=save_every,
        tests_first=test_first,
        window=window,
        block=block,
        ks=parse_ks(k),
        report=report,
        format=None if format is None else format.value,
        zero_based=zero_based,
        multiclass=multiclass,
        skips_bad_lines=skip_bad_lines,
        skips_seen=skip_seen,
        as_json=json,
        given=online.given_on_command_line(context),
    )
    code = StreamRun(classifier, settings).run()
    if code:
        raise typer.Exit(code)
