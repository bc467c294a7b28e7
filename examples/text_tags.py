"""Tags for texts: train on lists of tags, ask, explain, save.

Run:  python examples/text_tags.py
"""

from __future__ import annotations

import tempfile

from sklearn.feature_extraction.text import TfidfVectorizer

import ramify
from ramify import PLTClassifier

TICKETS = [
    ("screen stays black after start", ["display"]),
    ("screen flickers at night", ["display"]),
    ("battery drains within an hour", ["power"]),
    ("battery swells and gets hot", ["power", "safety"]),
    ("charger sparks", ["power", "safety"]),
    ("cannot log in any more", ["account"]),
    ("password forgotten", ["account"]),
    ("cannot log in after the update", ["account", "update"]),
    ("update drains the battery", ["power", "update"]),
    ("thank you, all is well", []),
] * 5


def main() -> None:
    texts, tags = zip(*TICKETS, strict=True)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    clf = PLTClassifier(arity=2, max_leaf=3, vectorizer=vectorizer, random_state=0).fit(list(texts), list(tags))
    for text in ("hot battery", "log in fails since the update", "thank you"):
        answer = ", ".join(f"{tag} {p:.0%}" for tag, p in clf.predict_one(text, threshold=0.2))
        print(f"{text}: {answer or 'no tag'}")
    print()
    print(clf.explain("hot battery", "safety"))
    with tempfile.TemporaryDirectory() as folder:
        clf.save(f"{folder}/tickets")
        assert ramify.load(f"{folder}/tickets").predict_one("hot battery") == clf.predict_one("hot battery")


if __name__ == "__main__":
    main()
