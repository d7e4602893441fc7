"""`python -m topnrank`: the command line."""

from topnrank.cli import main

raise SystemExit(main())
