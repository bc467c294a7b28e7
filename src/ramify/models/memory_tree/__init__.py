"""The contextual memory tree."""
