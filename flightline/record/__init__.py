"""What a record is: its shape, and the one gate that an answer passes before it is kept or judged. Pure."""
