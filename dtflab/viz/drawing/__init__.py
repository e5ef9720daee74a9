"""The parts of pictures: markup, marks, colours, styles, units, tables.

Pages: `picture` (a drawing, its sentence and its table), `svg` (markup that nothing can break), `palette` (the colour,
letter and label of a device), `style` (for one reader or a projector), `marks` (badges, headings, legends), `units`
(numbers with units), `names` (op names in few letters), `tables` (pages of tables), `figures` (what matplotlib draws),
`png` (a picture as pixels), `front_end` (the module that brings pictures to life), `columns` (its data in short),
`ticker` (what changes while a cell runs), `readings` (the values of a plot, where it is pointed at).
"""
