"""The filter tree."""
