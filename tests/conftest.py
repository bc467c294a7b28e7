"""Settings shared by all tests."""

from hypothesis import settings

# A busy machine is no failure, so examples have no time limit.
settings.register_profile("ramify", deadline=None)
settings.load_profile("ramify")
