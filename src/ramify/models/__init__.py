"""The classifiers, one file each, and beside them what they share."""
