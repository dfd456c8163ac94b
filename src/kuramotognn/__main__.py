"""``python -m kuramotognn``."""

import sys

from kuramotognn.cli import main

sys.exit(main())
