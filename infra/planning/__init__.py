"""Pure functions from settings to plans. Nothing here imports pulumi or calls AWS."""
