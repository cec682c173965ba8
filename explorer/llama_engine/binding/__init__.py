"""llama.cpp's C interface, as the pinned build of xllamacpp exports it."""
