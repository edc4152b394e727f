"""What is tried over several nodes or from end to end, and what a trial leaves behind."""
