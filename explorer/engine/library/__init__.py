"""Which models there are: on this disk, on the Hub, and what their files say without being
loaded."""
