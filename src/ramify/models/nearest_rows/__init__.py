"""Exact nearest training rows."""
