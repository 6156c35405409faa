"""The documented functions of keras.backend, a module a subject."""
