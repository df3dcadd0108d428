"""The version of hlo-verify; pyproject.toml reads it from here."""

__version__ = "0.1.0"


def told() -> str:
    """The versions of what a verdict rests on, in a line. (`importlib.metadata` would know them too, and takes as long
    to import as Python takes to start.)"""
    from platform import python_version

    try:
        from jaxlib.version import __version__ as of_jaxlib
    except ImportError:
        of_jaxlib = "not installed"
    return f"hlo-verify {__version__} (jaxlib {of_jaxlib}, Python {python_version()})"
