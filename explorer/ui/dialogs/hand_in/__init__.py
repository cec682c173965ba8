"""What is handed in after a class: a report, a script or notebook, a moving picture of a run."""
