"""Plain objects that say what is compared and what is shown of it."""
