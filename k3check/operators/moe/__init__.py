"""The mixture of experts: router, activation, and the latent layer around them."""
