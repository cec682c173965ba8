"""The figures that a lesson may name, by what they are about."""
