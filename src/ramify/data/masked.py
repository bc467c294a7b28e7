"""Masked arrays of numpy: rejected, as the values beneath a mask mean nothing."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_no_mask(name: str, values: Any) -> None:
    """Reject a masked array with masked values: numpy functions would use what lies beneath the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        at = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        where = f"row {at[0]}" + (f", column {at[1]}" if len(at) > 1 else "") if at else "its only value"
        raise ValueError(f"{name} has masked values, the first in {where}: fill them in or remove them")
