"""What happens between the embedding and the logits, as boards, lines and bars."""
