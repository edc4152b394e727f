"""What the functions share: claims, batches, bad events, metrics, notification."""
