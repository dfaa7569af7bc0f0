"""Mining: negatives drawn from the corpus by their embeddings, and positives drawn by the same scores."""
