"""Reports that nobody reads, for tools that ask for thousands of verdicts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest.mock import patch


@contextlib.contextmanager
def unread() -> Iterator[None]:
    """Try no repairs meanwhile, which only people read. No verdict and no line that is named depends on them."""
    from hlo_verify.passes.refute import refute

    with patch.object(refute, "watched", lambda *_: None), patch.object(refute, "suggest", lambda *_: None):
        yield
