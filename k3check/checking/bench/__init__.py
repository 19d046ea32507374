"""Speed: prefill of the built-in by its toggles, of the user's operator, of installed libraries."""
