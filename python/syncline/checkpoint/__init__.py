"""The folder of a Keras training's checkpoints: names, safe writing, and what a checkpoint has beside the model."""
