"""`python -m earshot` is the same as the `earshot` command."""

from earshot.cli import main

if __name__ == "__main__":
    main()
