"""What the roles ask of the hardware table, and what a configuration run leaves behind."""
