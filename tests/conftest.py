"""Settings shared by all tests."""

import signal

from hypothesis import settings

# A busy machine is no failure, so examples have no time limit.
settings.register_profile("ramify", deadline=None)
settings.load_profile("ramify")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so would every process they start to see
# how it takes one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
