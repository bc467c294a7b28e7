"""Twenty questions in lay terms to the demo's model, written down before the demo was changed, and five lines to teach.

    python -m benchmarks.lay_questions
    python -m benchmarks.lay_questions --choose

trains the demo's model and asks them before and after teaching. An answer is sensible if its first code starts with one
of the listed ones. No taught line is one of the questions; the first five questions use its terms in other words.
`--choose` shows what settings are chosen by instead: the recall of training terms that are held out, and the sensible
answers to the other questions in `lay_terms.py`.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path
from typing import Any

from benchmarks import lay_terms
from ramify import metrics
from ramify.cli.commands.demo import demo_data, new_classifier, teach
from ramify.cli.data import LabelledRows, truth_for
from ramify.data.icd10 import Icd10, LabelledTexts, load_icd10, with_codes_only, with_general_terms

# A question, and the beginnings of the codes that are sensible first answers.
QUESTIONS: dict[str, tuple[str, ...]] = {
    "he had a heart attack at work": ("I21", "I22"),
    "grandfather suffered a stroke": ("I60", "I61", "I62", "I63"),
    "my mother has sugar disease": ("E08", "E09", "E10", "E11", "E13"),
    "woke up with a pink eye": ("H10", "B30"),
    "throwing up all day": ("R11",),
    "broken wrist": ("S62.0", "S62.1", "S52.5", "S52.6"),
    "high blood pressure": ("I10", "I15", "I16", "I1A", "R03.0"),
    "runny nose and sneezing": ("J00", "J30", "J31", "J34", "R06.7", "R09.8"),
    "cannot sleep at night": ("F51", "G47.0"),
    "bee sting": ("T63.4",),
    "the flu": ("J09", "J10", "J11"),
    "kidney stone": ("N20",),
    "bad back pain": ("M54",),
    "very sad for months, no joy in anything": ("F32", "F33", "F34", "R45.2", "R45.84"),
    "lung cancer": ("C34", "C78.0", "D02.2"),
    "burned hand on the stove": ("T23", "X15"),
    "dog bit my leg": ("W54", "S71", "S81"),
    "itchy skin rash": ("R21", "L20", "L23", "L24", "L25", "L27", "L28", "L29", "L30"),
    "ear infection in a child": ("H60", "H65", "H66", "H67"),
    "swollen tonsils": ("J03", "J35", "J36"),
}

# What a user teaches, one line each.
TAUGHT: dict[str, str] = {
    "heart attack": "I21.9",
    "stroke": "I63.9",
    "sugar disease": "E11.9",
    "pink eye": "H10.9",
    "throwing up": "R11.10",
}


def ask(classifier: Any, questions: dict[str, tuple[str, ...]]) -> int:
    """Print the first code of each question; the number of sensible ones."""
    n_sensible = 0
    for question, sensible in questions.items():
        code, probability = classifier.predict_one(question, top_k=1)[0]
        is_sensible = code.startswith(sensible)
        n_sensible += is_sensible
        print(f"{'yes' if is_sensible else 'no ':3} {question:40} {code:9} {probability:6.1%}")
    return n_sensible


def print_recall(classifier: Any, held_out: LabelledTexts) -> None:
    truth, _ = truth_for(classifier, LabelledRows(Path("held out"), held_out.texts, held_out.labels))
    answer = classifier.predict_proba(held_out.texts, top_k=5)
    print(*(f"R@{k} {100 * metrics.recall_at_k(truth, answer, k):.1f}" for k in (1, 3, 5)))


def with_terms_held_out(data: Icd10, share: float = 0.2) -> Icd10:
    """The training rows as data of their own: a share of those that are no title, by checksum, is the test part."""
    titles = {title.casefold() for title in data.names.values()}
    parts = LabelledTexts([], []), LabelledTexts([], [])
    for text, labels in zip(*data.train, strict=True):
        part = parts[zlib.crc32(f"a{text}".encode()) < share * 2**32 and text.casefold() not in titles]
        part.texts.append(text)
        part.labels.append(labels)
    return Icd10(*parts, data.names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choose", action="store_true", help="held-out training terms and other questions")
    choose = parser.parse_args().choose
    if choose:
        data = with_general_terms(with_terms_held_out(with_codes_only(load_icd10())))
        classifier = new_classifier(-1).fit(data.train.texts, data.train.labels)
        print_recall(classifier, data.test)
        questions = {question: tuple(codes.split()) for question, codes in lay_terms.QUESTIONS.items()}
        print(f"{ask(classifier, questions)} of {len(questions)} sensible")
        return
    data = demo_data()
    classifier = new_classifier(-1).fit(data.train.texts, data.train.labels)
    print_recall(classifier, data.test)
    print(f"before teaching: {ask(classifier, QUESTIONS)} of {len(QUESTIONS)} sensible\n")
    for text, code in TAUGHT.items():
        teach(classifier, text, code)
    print(f"after teaching: {ask(classifier, QUESTIONS)} of {len(QUESTIONS)} sensible")


if __name__ == "__main__":
    main()
