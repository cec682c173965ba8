"""A .gguf file as llama.cpp opens it: its weights, its tokenizer and its model card."""
