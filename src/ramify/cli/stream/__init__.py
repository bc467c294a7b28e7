"""The parts of `ramify stream`."""
