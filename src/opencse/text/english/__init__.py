"""Views by rules of English grammar: contradictions and paraphrases that differ from their source in few words."""
