"""LOMtree."""
