"""`ramify demo`: medical coding with ICD-10-CM, from the data to a model that answers and can be taught."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import output
from ramify.cli.options import AsJson, Threads, examples, n_jobs

KS = [1, 3, 5]
# Number of codes in an answer, and the least probability of those after the first.
SHOWN, SHOWN_FROM = 3, 0.01
EXAMPLES = examples("ramify demo", "ramify demo --model icd10 --threads 1")
# None of these texts is in the training set. The last has no known word.
QUESTIONS = ("acute chest pain", "kidney stone", "allergic to peanuts", "ruptured appendix", "asdf qwerty")
# Lay terms that the classification does not use, and questions with them in other words.
LESSONS = {
    "heart attack": "I21.9",
    "stroke": "I63.9",
    "sugar disease": "E11.9",
    "pink eye": "H10.9",
    "throwing up": "R11.10",
}
ASKED_AGAIN = ("he had a heart attack at work", "my child has a pink eye", "throwing up all day")
# A line is learned until the model is this sure of it, at most so many times. Below 0.9 few terms are recognised among
# other words: see benchmarks/README.md.
SURE, MAX_STEPS = 0.9, 30
# Words that no diagnosis depends on. "With", "without", "no" and "not" are kept.
FUNCTION_WORDS = (
    "a an and as at be been by for from had has have he her his i in is it my of on or our she that the their they "
    "this to was we were you your"
)


def new_classifier(threads: int | None = None) -> Any:
    """The demo's classifier: it learns online, so that it can be taught."""
    from ramify.data.text import default_stream_vectorizer
    from ramify.models.online_plt.classifier import OnlinePLTClassifier

    # Pairs of words distinguish codes better than single words ("left" of what?). Stems are shared by what a patient
    # and a classification call it: "burned", "burns" and "burn of".
    vectorizer = default_stream_vectorizer().set_params(
        ngram_range=(1, 2), stop_words=FUNCTION_WORDS.split(), strip_accents="unicode", stemmer="english"
    )
    # Chosen on held-out training rows: see benchmarks/README.md.
    return OnlinePLTClassifier(
        tree="kmeans", arity=64, n_epochs=8, vectorizer=vectorizer, n_jobs=n_jobs(threads), random_state=0
    )


def demo_data() -> Any:
    """ICD-10-CM as the demo learns it: codes alone, and general terms."""
    from ramify.data import icd10

    return icd10.with_general_terms(icd10.with_codes_only(icd10.load_icd10()))


def demo(
    model: Annotated[Path, typer.Option("--model", "-m", metavar="DIR", help="Directory to save to.")] = Path(
        "demo/icd10"
    ),
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Train, query and teach a model of medical codes.

    Trains on the official descriptions of all ICD-10-CM codes, tests on held-out terms, answers a few questions, and
    learns lay terms, one line each.
    """
    from ramify import metrics
    from ramify.cli.data import LabelledRows, truth_for
    from ramify.cli.models import check_target, save_portable, training_facts, training_in_words
    from ramify.common import progress

    check_target(model)
    classifier = new_classifier(threads)
    with progress.shown(output.is_watched()) as phases:
        with progress.phase("reading ICD-10-CM"):
            data = demo_data()
        start = time.perf_counter()
        classifier.fit(data.train.texts, data.train.labels)
        took = time.perf_counter() - start
        classifier.set_names(labels=data.names)
        with progress.phase("testing on held-out terms"):
            truth, _ = truth_for(classifier, LabelledRows(model, data.test.texts, data.test.labels))
            answer = classifier.predict_proba(data.test.texts, top_k=max(KS))
            found = {f"@{k}": metrics.recall_at_k(truth, answer, k) for k in KS}
        answers = [_answer(classifier, text) for text in QUESTIONS]
        before = [_answer(classifier, text) for text in ASKED_AGAIN]
        start = time.perf_counter()
        for text, code in LESSONS.items():
            teach(classifier, text, code)
        taught_in = time.perf_counter() - start
        after = [_answer(classifier, text) for text in ASKED_AGAIN]
        with progress.phase("saving"):
            save_portable(classifier, model)
    facts = training_facts(classifier, len(data.train.texts), took, phases.seconds.get("building the tree", 0.0), model)
    if json:
        output.print_json(
            facts
            | {"test_rows": len(data.test.texts), "code_found": found}
            | {"answers": answers, "before_teaching": before, "after_teaching": after}
        )
        return
    output.show("ICD-10-CM: from the words of a diagnosis to its code.")
    output.show(training_in_words(facts))
    print()
    output.print_table(
        [f"{len(data.test.texts):,} held-out terms, percent", *(f"@{k}" for k in KS)],
        [["R: codes that are found", *(f"{100 * found[f'@{k}']:.1f}" for k in KS)]],
    )
    for given in answers:
        _show_answer(given)
    print("\nSome lay terms are in no description. One answer before teaching:")
    _show_answer(before[0])
    print(f"\nTeach it five of them, one line each ({1000 * taught_in:.0f} ms):")
    for text, code in LESSONS.items():
        print(f"  {text:{max(map(len, LESSONS))}}  {code}")
    print("\nAsk again, in other words:")
    for given in after:
        _show_answer(given)
    print("\nAsk more:")
    ramify = _command()
    print(f'  {ramify} predict --model {model} --text "persistent dry cough"')
    print(f'  {ramify} explain --model {model} --text "{QUESTIONS[1]}" --label N20.0')
    print(f"  {ramify} tree --model {model}")


def teach(classifier: Any, text: str, code: str) -> None:
    """Learn a line until the model is sure of it: one step is little against a code's other texts."""
    for _ in range(MAX_STEPS):
        classifier.learn_one(text, [code])
        label, probability = classifier.predict_one(text, top_k=1)[0]
        if label == code and probability >= SURE:
            return


def _command() -> str:
    """How to call this program from here: `make demo` runs one that is not on the path."""
    return sys.argv[0] if Path(sys.argv[0]).name == "ramify" and shutil.which("ramify") is None else "ramify"


def _answer(classifier: Any, text: str) -> dict[str, Any]:
    """The most probable codes of a text, and the places of the text that support the first."""
    from ramify.cli.models import with_names

    if len(classifier.schema_.row(text)[0]) == 0:
        return {"text": text, "labels": [], "spans": [], "notice": "no known word"}
    found = classifier.predict_one(text, top_k=SHOWN)
    kept = found[:1] + [pair for pair in found[1:] if pair[1] >= SHOWN_FROM]
    labels = [{"label": label, "probability": p, "name": name} for label, p, name in with_names(classifier, kept)]
    spans = [span._asdict() for span in classifier.explain(text, kept[0][0]).spans]
    return {"text": text, "labels": labels, "spans": spans}


def _show_answer(answer: dict[str, Any]) -> None:
    """An answer for people; in a terminal, the words that support its first code are underlined."""
    from ramify.explain.score import Span

    print()
    if "notice" in answer:
        print(output.title_line(answer["text"]))
        print(f"  {answer['notice']}")
        return
    spans = [Span(**span) for span in answer["spans"]]
    output.show(output.marked(answer["text"], spans) if spans else answer["text"])
    print(output.label_lines([(a["label"], a["probability"], a["name"]) for a in answer["labels"]]), end="")
