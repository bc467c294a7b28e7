"""Thresholds tuned for F measures around any classifier."""
