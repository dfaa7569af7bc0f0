"""From a corpus to the rows and tokens of training."""
