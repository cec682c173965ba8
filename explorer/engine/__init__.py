"""torch, transformers and tiktoken: loads a model, runs passes, records what they did.  No Qt."""
