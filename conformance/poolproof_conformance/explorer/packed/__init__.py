"""The packed engine: states as bit-packed integers in sorted arrays, the step over a whole frontier at once.

It takes configurations of one event, without groups, capacity tests, bad calls and demands of nothing; see fields.py.
"""
