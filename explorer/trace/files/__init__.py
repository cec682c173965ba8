"""The .dxt file: written, and read with every bound checked."""
