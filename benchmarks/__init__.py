"""One folder per family, shared parts beside them. Run from the root of the repository: python -m benchmarks.plt.run"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "benchmarks" / "work"  # environments, unpacked data, results
