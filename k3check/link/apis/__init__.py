"""The APIs that an endpoint may speak, and what their answers, events and errors look like."""
