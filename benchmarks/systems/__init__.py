"""What is compared. One module per system with the same names, so that the worker treats all alike:

- `PACKAGE`: the distribution whose version is recorded; `IMPORT`: the module imported before any clock starts;
- `INSTALL`: arguments of `pip install`, one list per call; `READS_TEXT`: trains only from a file, is given no arrays;
- `SETTINGS`: name -> Setting;
- `train(problem, folder, parameters, threads)` trains and saves, and returns a Stopwatch for each of "train", "save"
  and "parse" that it can tell apart;
- `Model(folder, parameters, threads)` loads. `prepare(X)` and `prepare_one(x)` put rows into the system's own form and
  `unpack(answer, k)` turns a batch's answer into the scorer's arrays, neither timed; `batch(rows, k)` and `one(row, k)`
  answer, timed.

Modules import their system inside functions: the driver reads the settings without having it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

NAMES = ("ramify", "omikuji", "napkinxc", "pecos")


@dataclass(frozen=True)
class Setting:
    """One way to use a system. Settings with equal `train` share one trained model.

    `main` settings are those of the short comparison; `kind` limits a setting to "multiclass" or "multilabel" sets.
    """

    train: dict[str, Any] = field(default_factory=dict)
    predict: dict[str, Any] = field(default_factory=dict)
    main: bool = False
    kind: str | None = None


def module(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.systems.{name}")
