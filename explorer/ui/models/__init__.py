"""What the Model panel and the dialogs about models are made of."""
