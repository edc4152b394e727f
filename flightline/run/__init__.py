"""One run: what is asked, what is taken as an answer, until when, and how it ends."""
