"""The one table of actions, and the menus and shortcuts made from it."""
