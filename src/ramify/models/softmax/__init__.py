"""Embeddings under a softmax over a label tree."""
