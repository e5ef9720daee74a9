"""Exercises that grade themselves: checks, hints, scores."""
