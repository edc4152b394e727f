"""Starts a training run: checks the request, prepares its data, sends the command."""
