"""Do the checks' own tests notice when a check judges otherwise? `make mutation`."""
