"""`python -m kit` is the `speckit` command."""

from kit.cli import main

if __name__ == "__main__":
    main()
