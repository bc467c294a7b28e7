"""What learns from a stream. One module per system with the same names, so that `online_worker.py` treats all alike:

- `PACKAGE`, `IMPORT`, `INSTALL` and `SETTINGS` as in `systems`; of a Setting only `train` and `kind` are used;
- `Learner(parameters, threads, folder, problem)` knows the problem's sizes, and nothing of its rows;
- `prepare(problem)` puts rows into the system's own form, not timed; `learn(prepared)` is one pass over them, timed,
  and may be called again; a system that cannot go on after a pass says `PASSES = 1`;
- `answer(X)` is the best five labels of each row, -1 where there are fewer;
- `progressive()`, after a first pass with `parameters["progressive"]`, is which rows of that pass were answered rightly
  just before they were learned;
- `details()` is anything else worth a column.
"""

from __future__ import annotations

import importlib
from types import ModuleType


def module(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.learners.{name}")
