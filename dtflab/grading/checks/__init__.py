"""The questions of the course, a file per topic. A file that is put here is found."""
