"""Mining: negatives and positives drawn by their embeddings."""
