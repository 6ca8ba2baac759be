"""The command demo: agents learn two data sets, alone and together."""
