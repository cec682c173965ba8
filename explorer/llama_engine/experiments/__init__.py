"""Questions that take passes of their own, answered by llama.cpp's passes."""
