"""What every classifier shares."""
