"""Scenes and lessons: reading their files, and working out the figures in their sentences.

A scene says what the screen shows; a lesson is a folder of pages with scenes and questions.  Both
may come from strangers: sizes are bounded, expressions are parsed here and never run as code, and
every error names the file and the line.
"""
