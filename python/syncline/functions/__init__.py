"""The documented functions of keras.backend, one module per subject."""
