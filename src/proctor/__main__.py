"""`python -m proctor` is the `proctor` command."""

from proctor.cli.main import main

if __name__ == "__main__":
    main()
