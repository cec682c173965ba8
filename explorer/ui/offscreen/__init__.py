"""The window without anybody before it: screenshots and its bench."""
