"""Small widgets that every other room may use."""
