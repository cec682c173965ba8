"""What happens between the layers of a file as it is: read, and changed, while llama.cpp runs."""
