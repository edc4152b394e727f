"""How people are told: the message, its channels, and one voice that sends it once through each."""
