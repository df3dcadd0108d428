"""Defects of one module alone: its placements, collectives, schedule and buffers."""
