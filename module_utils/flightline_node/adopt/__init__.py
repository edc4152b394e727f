"""A cluster that is there already: what is found on a machine, what is put behind it, and how that is taken back."""
