"""`python -m earshot`: the `earshot` command."""

from earshot.cli import main

if __name__ == "__main__":
    main()
