"""The `ramify` command."""


def app() -> None:
    print("ramify")
