"""What several ranks do together: their batches, files, output and end. `syncline.distributed` is its interface."""
