"""A stream of tickets: a model starts empty, meets new labels and words, is evaluated as it learns, and is resumed.

Run:  python examples/online.py
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator

import ramify
from ramify import OnlinePLTClassifier, progressive

TOPICS = {
    "display": ["screen", "black", "flicker", "pixel", "brightness"],
    "power": ["battery", "charger", "empty", "drain", "cable"],
    "account": ["login", "password", "locked", "mail", "code"],
    "sound": ["speaker", "noise", "silent", "crackle", "volume"],
    "camera": ["photo", "blurry", "lens", "flash", "zoom"],
}


def tickets(n: int, topics: list[str], seed: int) -> Iterator[tuple[dict[str, float], list[str]]]:
    """Words of one or two topics, with the topics as labels."""
    generator = random.Random(seed)
    for _ in range(n):
        labels = generator.sample(topics, generator.choice([1, 1, 2]))
        words = [word for label in labels for word in generator.sample(TOPICS[label], 2)]
        yield dict.fromkeys([*words, generator.choice(["please", "help", "urgent"])], 1.0), labels


def main() -> None:
    clf = OnlinePLTClassifier(random_state=0)
    topics = list(TOPICS)

    # Three topics at first, then two new ones. Each ticket is predicted before it is learned.
    for known in (topics[:3], topics):
        result = progressive.evaluate(clf, tickets(600, known, seed=len(known)), window=200, k=(1,))
        scores = ", ".join(f"{100 * window.score.accuracy:.0f}%" for window in result.windows)
        print(f"{len(known)} topics: P@1 by 200 tickets {scores}; {clf.n_labels_} labels known")

    answer = clf.predict_one({"photo": 1.0, "battery": 1.0, "empty": 1.0}, threshold=0.2)
    print("photo, battery, empty:", ", ".join(f"{label} {p:.0%}" for label, p in answer))

    with tempfile.TemporaryDirectory() as folder:
        clf.save(f"{folder}/online")  # resumes where it stopped
        again = ramify.load(f"{folder}/online")
        again.learn_one({"keyboard": 1.0, "stuck": 1.0}, ["keys"])
        print("after one more ticket:", again.predict_one({"keyboard": 1.0}, top_k=1)[0][0])
        clf.freeze().save(f"{folder}/serving")  # smaller, no longer learns
        assert ramify.load(f"{folder}/serving").predict_one({"photo": 1.0}, top_k=1)[0][0] == "camera"


if __name__ == "__main__":
    main()
