"""What a tool printed: the bundle of raw outputs, one parser per tool, the facts."""
