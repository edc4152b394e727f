"""What should be: the hardware table, what follows from it, the vendors' error catalogues."""
