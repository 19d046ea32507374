"""Resuming from a prefix cache: KDA state, convolution state and MLA cache restored together."""
