"""Run the command line with ``python -m k3check``."""

from k3check.cli import main

if __name__ == "__main__":
    main()
