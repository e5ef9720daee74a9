"""The layered layout of a graph with clusters, in pure Python. It knows nothing of dtflab.

Pages: `column`, `layered`, `level`, `ranks`, `shapes`, `slots`, `tracks`.
"""
