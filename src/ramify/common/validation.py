"""Check parameters; every message has the name, the allowed values and the given value."""

from __future__ import annotations

import math
import numbers
import os
import sys
from collections.abc import Iterable
from typing import Any

# More threads than any machine has: a larger n_jobs means all of them.
MAX_THREADS = 4096
MOST_SHOWN = 100  # characters of a wrong value


def briefly(value: Any) -> str:
    """Return what a message shows of a value: its beginning if it is long, its type if it cannot be printed.

    >>> briefly("5"), len(briefly([0] * 1_000_000))
    ("'5'", 101)
    """
    try:
        text = repr(value)
    except Exception:  # a sparse array with parts of wrong types has no repr
        text = f"a broken {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"


def check_integer(name: str, value: Any, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """Return an integer within bounds; True and False are not accepted.

    >>> check_integer("arity", 0, at_least=2)
    Traceback (most recent call last):
    ValueError: arity must be an integer of at least 2, got 0
    """
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or (at_least is not None and value < at_least) or (at_most is not None and value > at_most):
        raise ValueError(f"{name} must be an integer{_bounds(at_least, at_most)}, got {briefly(value)}")
    return int(value)


def check_number(
    name: str, value: Any, *, at_least: float | None = None, at_most: float | None = None, above: float | None = None
) -> float:
    """Return a finite number within bounds.

    >>> check_number("C", -1, above=0)
    Traceback (most recent call last):
    ValueError: C must be a number above 0, got -1
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if (
        not is_number
        or (above is not None and not value > above)
        or (at_least is not None and value < at_least)
        or (at_most is not None and value > at_most)
    ):
        raise ValueError(f"{name} must be a number{_bounds(at_least, at_most, above)}, got {briefly(value)}")
    return float(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return one of the given strings.

    >>> check_choice("loss", "hinge", ["logistic", "squared_hinge"])
    Traceback (most recent call last):
    ValueError: loss must be 'logistic' or 'squared_hinge', got 'hinge'
    """
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        quoted = [repr(choice) for choice in choices]
        allowed = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
        raise ValueError(f"{name} must be {allowed}, got {briefly(value)}")
    return value


def check_flag(name: str, value: Any) -> bool:
    """Return True or False.

    >>> check_flag("verbose", "yes")
    Traceback (most recent call last):
    ValueError: verbose must be True or False, got 'yes'
    """
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise ValueError(f"{name} must be True or False, got {briefly(value)}")
    return bool(value)


def check_jobs(n_jobs: Any) -> None:
    """Check `n_jobs` as in scikit-learn: None, a number of threads, or -1 for all cores, -2 for all but one."""
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {briefly(n_jobs)}; -1 means all cores")


def number_of_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: None is 1 unless joblib sets more, -1 is all usable cores."""
    check_jobs(n_jobs)
    if n_jobs is not None and n_jobs > 0:
        return min(int(n_jobs), MAX_THREADS)
    if n_jobs is None and "joblib" not in sys.modules:  # it is slow to import, and what is not imported sets nothing
        return 1
    import joblib

    threads = int(joblib.effective_n_jobs(n_jobs))
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(threads, allowed))


def _bounds(at_least: float | None, at_most: float | None, above: float | None = None) -> str:
    if at_least is not None and at_most is not None:
        return f" between {at_least} and {at_most}"
    if above is not None and at_most is not None:
        return f" above {above} and at most {at_most}"
    if at_least is not None:
        return f" of at least {at_least}"
    if above is not None:
        return f" above {above}"
    return f" of at most {at_most}" if at_most is not None else ""
