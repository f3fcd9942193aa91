"""What holds for all tests, however they are started and however fast the machine is."""

import signal

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

# A shell ignores Ctrl-C for what it starts in the background, and programs pass that on.
signal.signal(signal.SIGINT, signal.default_int_handler)
