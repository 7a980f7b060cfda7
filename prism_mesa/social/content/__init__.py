"""What agents write, and their tools for looking things up and acting while they think."""
