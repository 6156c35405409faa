"""Jobs of several ranks: batches, files, output, end of the job. The interface is `syncline.distributed`."""
