"""What was found, and how it is shown: the model, and one module per format."""
