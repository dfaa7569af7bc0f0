"""From a user's file to the rows of training: sampling, missing columns, mixing, tokens."""
