"""Helpers that tests of several folders use."""
