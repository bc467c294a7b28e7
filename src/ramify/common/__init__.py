"""Checks of parameters and progress of long work: what every part of the library uses."""
