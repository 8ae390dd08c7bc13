"""`python -m streamlasso` is the command `streamlasso`."""

import sys

from streamlasso.cli import main

if __name__ == "__main__":
    sys.exit(main())
