"""What one agent computes alone."""
