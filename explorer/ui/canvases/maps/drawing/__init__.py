"""Drawing a mask on a map: the strokes of mouse and keys, and the marks on changed cells."""
