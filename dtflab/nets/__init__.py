"""What networks are made of: layers, recurrent cells, losses, metrics, and ways to split all that over devices."""
