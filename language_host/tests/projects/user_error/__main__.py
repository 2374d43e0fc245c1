"""A program with a bug in it."""


def divide(number: int) -> float:
    return number / 0


divide(1)
