"""The field's terms in plain words: the list of them, and the labels that carry one."""
