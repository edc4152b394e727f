"""What a training run leaves behind: who hung, who is slow, who failed first. Pure but for readers of files."""
