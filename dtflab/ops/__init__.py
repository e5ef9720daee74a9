"""What operations exist: one family per file, one class per op, everything about it in one place."""
