"""`python -m hlo_verify`."""

import sys

from hlo_verify.cli import main

sys.exit(main())
