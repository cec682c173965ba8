"""What a run takes: bytes and time, planned and as the machine allows."""
