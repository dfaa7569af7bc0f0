"""Views by rules of English grammar: contradictions and paraphrases that change few words."""
