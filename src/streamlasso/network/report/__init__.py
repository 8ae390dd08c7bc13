"""A run as tables, figures and a page: group.py -> tables.py -> figures.py -> page.py; write.py writes them all."""
