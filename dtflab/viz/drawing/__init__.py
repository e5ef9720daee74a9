"""What pictures are drawn with: markup, marks, colours, styles, units, tables.

Pages: `colouring`, `figures`, `marks`, `names`, `palette`, `picture`, `scopes`, `style`, `svg`, `tables`, `units`.
"""
