"""llama.cpp under the clock: what recording costs, and how fast this machine reads the weights."""
