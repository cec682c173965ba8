"""The .dxt file: written, read with every bound checked, and validated before anybody sees it."""
