"""Campaigns: many targets, cores, modes and layouts, exhaustive first, then random, for hours, into one SQLite file."""
