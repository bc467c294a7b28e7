"""Settings of small spectral trees."""

from __future__ import annotations

SMALL = {"n_candidates": 12, "depth": 5, "rank": 16, "passes": 5, "random_state": 0}
LEARNED = {"space": "learned", "deviation": "within", "ways": 3}
