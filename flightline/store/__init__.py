"""Where runs are kept on this machine, and how they are found again."""
