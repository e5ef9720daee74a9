"""sim: questions asked of simulated hardware: how fast would this model train on that cluster, and what if …?"""
