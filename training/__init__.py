"""The reference training job: a small GPT on FSDP2 that loses nothing when it is interrupted. See docs/training.md."""
