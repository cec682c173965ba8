"""Tokens as boxes, bars, grids and trees."""
