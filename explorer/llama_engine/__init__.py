"""llama.cpp: runs a .gguf file as it is, in a process of its own, and records its attention.

No torch and no transformers, not even lazily.  `binding/` declares the part of llama.cpp's C
interface that is used, for one exact build; `passes/` runs the model and records what its
attention received; `selftest/` proves that on a dozen tokens when a file is opened.
"""
