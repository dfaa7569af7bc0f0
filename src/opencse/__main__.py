"""`python -m opencse`: the command line."""

from opencse.commands.main import main

if __name__ == "__main__":
    main()
