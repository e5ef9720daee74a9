"""The parts of pictures: markup, marks, colours, styles, units, tables.

Pages: `colouring`, `figures`, `marks`, `names`, `palette`, `picture`, `scopes`, `style`, `svg`, `tables`, `units`.
"""
