"""fastText, in its own environment: train on one file, predict another, print JSON.

python -m benchmarks.softmax.fasttext_worker train.txt test.txt '{"dim": 100, "epoch": 25, "lr": 0.5, "wordNgrams": 1}'
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

PREFIX = "__label__"


def main() -> None:
    import fasttext

    train, test, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    start = time.process_time()
    model = fasttext.train_supervised(train, loss="hs", minCount=1, thread=1, verbose=0, **settings)
    trained = time.process_time() - start
    with open(test, encoding="utf-8") as lines:
        texts = [" ".join(word for word in line.split() if not word.startswith(PREFIX)) for line in lines]
    start = time.process_time()
    answers = model.predict(texts, k=5)[0]
    asked = time.process_time() - start
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        model.save_model(file.name)
        size = os.path.getsize(file.name)
    labels = [[label.removeprefix(PREFIX) for label in row] for row in answers]
    print(json.dumps({"train": trained, "predict": asked / len(texts), "bytes": size, "labels": labels}))


if __name__ == "__main__":
    main()
