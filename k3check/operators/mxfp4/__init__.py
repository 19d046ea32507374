"""MXFP4: four-bit weights in groups of 32 with a power-of-two scale, as the experts have them."""
