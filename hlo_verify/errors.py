"""Errors that a user can act on."""


class InputError(ValueError):
    """The input cannot be verified as it stands: what is wrong, where, and what to do.

    The command line prints it as one message and exits with 2.
    """
