"""A run of `ramify stream`: its input, its checkpoints, its output."""
