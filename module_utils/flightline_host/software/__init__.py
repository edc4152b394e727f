"""Software of vendors: what is installed, what goes together, and how it gets there."""
