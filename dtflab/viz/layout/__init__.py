"""The layered layout of a graph with clusters, in pure Python. It knows nothing of the rest of dtflab.

Pages: `shapes` (boxes and clusters, what goes in and comes out), `layered` (the drawing as a whole), `level` (the
children of one cluster), `column` (one column of them), `ranks` (the order of rows, and within a row), `slots` (places
along a row), `tracks` (parallel lines in a channel), `nested` (a cluster with all its children closed, for a front end
that opens them), `around` (lines around boxes that stand where they stand).
"""
