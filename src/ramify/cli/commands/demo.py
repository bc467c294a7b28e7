"""`ramify demo`: medical coding with ICD-10-CM, from the data to a model that answers."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli import output
from ramify.cli.options import AsJson, Threads, examples, n_jobs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ramify.cli.data import LabelledRows

KS = [1, 3, 5]
# Number of codes in an answer, and their least probability.
SHOWN, SHOWN_FROM = 3, 0.01
EXAMPLES = examples("ramify demo", "ramify demo --model icd10 --threads 1")
# None of these texts is in the training set.
QUESTIONS = ("acute chest pain", "kidney stone", "allergic to peanuts", "ruptured appendix")


def demo(
    model: Annotated[Path, typer.Option("--model", "-m", metavar="DIR", help="Directory to save to.")] = Path(
        "demo/icd10"
    ),
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Train and query a model of medical codes.

    Trains on the official descriptions of all ICD-10-CM codes, tests on held-out terms, answers a few questions.
    """
    from ramify.cli.data import LabelledRows
    from ramify.cli.evaluation import evaluate_model
    from ramify.cli.models import check_target, save_portable, training_facts, training_in_words
    from ramify.common import progress
    from ramify.data.icd10 import load_icd10
    from ramify.data.text import default_vectorizer
    from ramify.models.plt.classifier import PLTClassifier

    check_target(model)
    # Pairs of words distinguish codes better than single words ("left" of what?).
    vectorizer = default_vectorizer().set_params(ngram_range=(1, 2))
    classifier = PLTClassifier(vectorizer=vectorizer, n_jobs=n_jobs(threads), random_state=0)
    with progress.shown(output.is_watched()) as phases:
        with progress.phase("reading ICD-10-CM"):
            data = load_icd10()
        start = time.perf_counter()
        classifier.fit(data.train.texts, data.train.labels)
        took = time.perf_counter() - start
        classifier.set_names(labels=data.names)
        with progress.phase("saving"):
            save_portable(classifier, model)
        with progress.phase("testing on held-out terms"):
            held_out = LabelledRows(model, data.test.texts, data.test.labels)
            report = evaluate_model(classifier, held_out, ks=KS)
            only_codes = _threshold_of_codes(list(data.names), classifier)
            found = _codes_found(classifier, held_out, only_codes)
            answers = _answers(classifier, only_codes)
    tree_took = phases.seconds.get("building the tree", 0.0)
    facts = training_facts(classifier, len(data.train.texts), took, tree_took, model)
    if json:
        output.print_json(facts | {"test": report, "code_found": found, "answers": answers})
        return
    output.show("ICD-10-CM: from the words of a diagnosis to code, category, block, chapter.")
    output.show(training_in_words(facts))
    print()
    names = [f"P@{k}" for k in KS]
    rows = [
        ["P: labels that are right, on all levels", *(f"{100 * report[name]:.1f}" for name in names)],
        ["R: codes that are found, codes alone", *(f"{100 * found[f'@{k}']:.1f}" for k in KS)],
    ]
    output.print_table([f"{report['rows']:,} held-out terms, percent", *(f"@{k}" for k in KS)], rows)
    for text, answer in answers.items():
        print(f"\n{output.title_line(text)}")
        print(output.label_lines([(a["label"], a["probability"], a["name"]) for a in answer]), end="")
    print("\nAsk more:")
    ramify = _command()
    print(f'  {ramify} predict --model {model} --text "persistent dry cough"')
    print(f'  {ramify} explain --model {model} --text "{QUESTIONS[0]}" --label R07.9')
    print(f"  {ramify} tree --model {model}")


def _command() -> str:
    """How to call this program from here: `make demo` runs one that is not on the path."""
    return sys.argv[0] if Path(sys.argv[0]).name == "ramify" and shutil.which("ramify") is None else "ramify"


def _threshold_of_codes(labels: list[str], classifier: Any) -> NDArray[np.float32]:
    """A threshold for each column that excludes chapters, blocks and subdivided categories."""
    import numpy as np

    subdivided = {label.partition(".")[0] for label in labels if "." in label}
    is_code = [
        not label.startswith("chapter ") and "-" not in label and label not in subdivided
        for label in classifier.classes_.tolist()
    ]
    return np.where(is_code, np.float32(0), np.float32(np.inf))


def _codes_found(classifier: Any, test: LabelledRows, only_codes: NDArray[np.float32]) -> dict[str, float]:
    """The share of a row's codes among its k most probable codes, averaged over rows that have a code."""
    import numpy as np

    from ramify import metrics
    from ramify.cli.data import truth_for

    truth = truth_for(classifier, test)[0][:, : classifier.n_labels_]
    truth.data[only_codes[truth.indices] > 1] = 0
    truth.eliminate_zeros()
    answer = classifier.predict_proba(test.X, top_k=max(KS), threshold=only_codes)
    has_code = np.flatnonzero(np.diff(truth.indptr))
    return {f"@{k}": metrics.recall_at_k(truth[has_code], answer[has_code], k) for k in KS}


def _answers(classifier: Any, only_codes: NDArray[np.float32]) -> dict[str, list[dict[str, Any]]]:
    """The most probable codes of a few texts."""
    import numpy as np

    from ramify.cli.models import with_names

    threshold = np.maximum(only_codes, np.float32(SHOWN_FROM))
    answers = classifier.predict_labels(list(QUESTIONS), top_k=SHOWN, threshold=threshold)
    return {
        text: [{"label": label, "probability": p, "name": name} for label, p, name in with_names(classifier, answer)]
        for text, answer in zip(QUESTIONS, answers, strict=True)
    }
