"""Other tools' published results, read. One small file per tool; what a file is, is told by its shape alone.

Nothing read here is trusted: it is checked where it enters, kept as text, and never executed.
"""
