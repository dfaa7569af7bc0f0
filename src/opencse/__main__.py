"""`python -m opencse`: the command line."""

from opencse.cli.main import main

if __name__ == "__main__":
    main()
