"""Small simulated scans, as files: atlases, runs, volumes, DICOM files, and tables beside them."""

import struct

import numpy as np

#: A grid of 6 x 5 x 4 voxels of 3 mm with six regions, whose labels are not 1, 2, 3, ...
SHAPE, AFFINE = (6, 5, 4), np.array([[3.0, 0, 0, -9], [0, 3, 0, -6], [0, 0, 3, -4.5], [0, 0, 0, 1]])
LABELS = (2, 3, 5, 8, 13, 21)
NAMES = ("left front", "right front", "left back", "right back", "left side", "right side")


def atlas_labels():
    """Blocks of 2 x 2 x 4 voxels; the other voxels are in no region."""
    labels = np.zeros(SHAPE, dtype=np.int16)
    for k, value in enumerate(LABELS):
        labels[2 * (k // 2) : 2 * (k // 2) + 2, 2 * (k % 2) : 2 * (k % 2) + 2] = value
    return labels


def write_tsv(path, text):
    """A table with tabs, from text with spaces."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(" ", "\t"))
    return path


def save_nifti(path, data, affine=AFFINE, tr=None):
    import nibabel

    image = nibabel.Nifti1Image(data, affine)
    image.header.set_xyzt_units("mm", "sec")
    if tr is not None:
        image.header.set_zooms((*image.header.get_zooms()[:3], tr))
    nibabel.save(image, path)
    return path


def save_atlas(path, names=True):
    save_nifti(path, atlas_labels())
    if names:
        stem = path.name.removesuffix(".gz").removesuffix(".nii")
        rows = "".join(f"{value}\t{name}\n" for value, name in zip(LABELS, NAMES, strict=True))
        path.with_name(stem + ".tsv").write_text("index\tname\n" + rows)
    return path


def made_run(n=40, seed=0):
    """(x, y, z, time): regions 1 and 2 are correlated positively, 3 and 4 negatively; a noisy background."""
    rng = np.random.default_rng(seed)
    series = rng.normal(size=(n, len(LABELS)))
    series[:, 1] = 0.8 * series[:, 0] + 0.6 * series[:, 1]
    series[:, 3] = -0.8 * series[:, 2] + 0.6 * series[:, 3]
    run = 1000 + 5 * rng.normal(size=(*SHAPE, n))
    labels = atlas_labels()
    for k, value in enumerate(LABELS):
        run[labels == value] += 40 * series[:, k]
    return run.astype(np.float32)


def region_means(volume, labels=None):
    """The mean of each region, by a plain loop."""
    labels = atlas_labels() if labels is None else labels
    return np.array([volume[labels == value].mean() for value in LABELS])


# --- DICOM ------------------------------------------------------------------------------------------------------------


def _dataset(path, number, series):
    from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, generate_uid

    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=[series, str(number)])
    dataset = FileDataset(str(path), Dataset(), file_meta=meta, preamble=b"\0" * 128)
    dataset.SeriesInstanceUID = generate_uid(entropy_srcs=[series])
    dataset.InstanceNumber = number
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, 16, 15, 0
    return dataset


def save_mosaic(path, volume, number, series="a"):
    """A Siemens mosaic: slices side by side in one image, and their number in a private header."""
    rows, columns, n = volume.shape
    side = int(np.ceil(np.sqrt(n)))
    tiles = np.zeros((side * side, rows, columns), dtype=np.uint16)
    tiles[:n] = np.moveaxis(np.asarray(volume, dtype=np.uint16), 2, 0)
    image = tiles.reshape(side, side, rows, columns).transpose(0, 2, 1, 3).reshape(side * rows, side * columns)
    dataset = _dataset(path, number, series)
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
    dataset.ImageType = ["ORIGINAL", "PRIMARY", "M", "MOSAIC"]
    dataset.Rows, dataset.Columns = image.shape
    dataset.PixelSpacing, dataset.SliceThickness, dataset.SpacingBetweenSlices = [3, 3], 3, 3
    dataset.ImageOrientationPatient, dataset.ImagePositionPatient = [1, 0, 0, 0, 1, 0], [0, 0, 0]
    block = dataset.private_block(0x29, "SIEMENS CSA HEADER", create=True)
    block.add_new(0x10, "OB", _csa(n, rows, columns))
    dataset.PixelData = image.tobytes()
    dataset.save_as(path, enforce_file_format=True)
    return path


def save_slice(path, number, series="a", data=None, place=0.0, **header):
    """One slice of a volume, as most scanners write it by default; `place` in mm, `header`: further DICOM fields."""
    dataset = _dataset(path, number, series)
    for name, value in header.items():
        setattr(dataset, name, value)
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
    dataset.Rows, dataset.Columns = 6, 5
    # Thinner than the spacing: there is a gap between slices, which the thickness does not show.
    dataset.PixelSpacing, dataset.SliceThickness = [3, 3], 2.5
    dataset.ImageOrientationPatient, dataset.ImagePositionPatient = [1, 0, 0, 0, 1, 0], [0, 0, place]
    dataset.PixelData = np.zeros((6, 5), np.uint16).tobytes() if data is None else data.astype(np.uint16).tobytes()
    dataset.save_as(path, enforce_file_format=True)
    return path


def save_enhanced(path, volume, number, series="a"):
    """An enhanced multi-frame image, one frame per slice."""
    from pydicom.dataset import Dataset
    from pydicom.sequence import Sequence

    rows, columns, n = volume.shape
    dataset = _dataset(path, number, series)
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4.1"
    dataset.Rows, dataset.Columns, dataset.NumberOfFrames = rows, columns, n
    shared, measures, orientation = Dataset(), Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness, measures.SpacingBetweenSlices = [3, 3], 3, 3
    orientation.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = Sequence([measures]), Sequence([orientation])
    dataset.SharedFunctionalGroupsSequence = Sequence([shared])
    frames = []
    for k in range(n):
        frame, content, position = Dataset(), Dataset(), Dataset()
        content.StackID, content.InStackPositionNumber, content.DimensionIndexValues = "1", k + 1, [1, k + 1]
        position.ImagePositionPatient = [0, 0, 3 * k]
        frame.FrameContentSequence, frame.PlanePositionSequence = Sequence([content]), Sequence([position])
        frames.append(frame)
    dataset.PerFrameFunctionalGroupsSequence = Sequence(frames)
    dimensions = []
    for pointer in (0x00209056, 0x00209057):
        dimension = Dataset()
        dimension.DimensionIndexPointer, dimension.FunctionalGroupPointer = pointer, 0x00209111
        dimensions.append(dimension)
    dataset.DimensionIndexSequence = Sequence(dimensions)
    dataset.PixelData = np.moveaxis(np.asarray(volume, dtype=np.uint16), 2, 0).tobytes()
    dataset.save_as(path, enforce_file_format=True)
    return path


def _csa(n, rows, columns):
    """The private header of a mosaic, version 2: named tags with items of text."""
    tags = {
        "NumberOfImagesInMosaic": ("US", [str(n)]),
        "AcquisitionMatrixText": ("SH", [f"{rows}*{columns}"]),
        "SliceNormalVector": ("FD", ["0.0", "0.0", "1.0"]),
        "ImageOrientationPatient": ("DS", ["1", "0", "0", "0", "1", "0"]),
    }
    out = b"SV10\4\3\2\1" + struct.pack("<2I", len(tags), 77)
    for name, (kind, items) in tags.items():
        out += struct.pack("<64si4s3i", name.encode(), len(items), kind.encode(), 0, len(items), 77)
        for item in items:
            text = item.encode() + b"\0"
            out += struct.pack("<4i", len(text), len(text), 77, len(text)) + text + b"\0" * (-len(text) % 4)
    return out
