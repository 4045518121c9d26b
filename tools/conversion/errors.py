"""Errors of the conversion."""


class Unsupported(Exception):
    """What of the checkpoint cannot be converted."""
