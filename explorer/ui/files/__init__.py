"""Opening, saving, exporting, dropping and copying."""
