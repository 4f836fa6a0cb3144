"""What every kind of sandbox asks of Linux itself: trees that agents built, what a world uses, bare system calls."""
