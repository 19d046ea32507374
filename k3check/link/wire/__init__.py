"""What goes over the wire and what comes back: bounded, timed, never trusted."""
