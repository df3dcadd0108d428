"""The version of hlo-verify."""

__version__ = "0.1.0"
