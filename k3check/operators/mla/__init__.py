"""Gated multi-head latent attention without rotary positions."""
