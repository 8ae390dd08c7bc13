"""Brain images and region series, as files.

series.py                                 region series from tables and NumPy files
nifti.py, atlas.py                        a recorded run (4-D NIfTI) and a label atlas -> region series
bids.py, events.py, confounds.py          files beside an image in a BIDS dataset
volumes.py -> regions.py                  one file of a scanner (NIfTI, DICOM) -> the mean of each region
arrivals.py, folder_watch.py              files that arrive in a folder, in the order of their volumes
replay.py                                 a recorded run, written to a folder as a scanner would
extras.py                                 optional packages
"""
