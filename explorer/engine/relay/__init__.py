"""llama.cpp's engine as a child of this one: what is asked of a .gguf opened as it is goes there.

Requests keep their run numbers, and frames come back as they are: nothing in them is unpacked.
"""
