"""Where processes run, which names they know, and where an address leads from there.

Pure data and pure functions: nothing here reads a file or looks a name up.
"""
