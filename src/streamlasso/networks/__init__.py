"""`streamlasso network`: read subjects, follow their networks, write tables, draw them; or watch a scanner.

The estimator is `streamlasso.network.StreamingNetwork`; everything here is what a person needs around it. This file
imports nothing, so that the command line can look up what there is without loading it.
"""
