"""What a model will take, from its config alone: nothing here reads a weight.

`dry_pass.py` runs a pass on torch's meta device, which has shapes and no numbers; `splits.py`
shares the model out among devices; `planner.py` puts the plan together.
"""
