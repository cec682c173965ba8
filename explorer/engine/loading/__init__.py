"""Opening a model: from a folder to live weights, tokenizer and card, or one sentence that says
why not."""
