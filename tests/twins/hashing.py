"""Mixing of 64-bit integers, as seeds and slots need it."""

from __future__ import annotations

WORD = 2**64


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)
