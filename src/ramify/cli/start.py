"""The first file of the `ramify` command: it answers Ctrl-C while `main` and what it needs are still being loaded.

It imports nothing that Python has not loaded already.
"""

import os


def main() -> None:
    """Run the command of this process and end it."""
    try:
        from ramify.cli.main import main

        main()
    except KeyboardInterrupt:  # `main` handles its own; this one came before it could
        os._exit(130)
