"""The command privacy: who could compute whose values, before anything runs."""
