#!/usr/bin/env python3
"""Makes digits-{train,test}-{images,labels}.gz beside this script.

    make-digits.py digits.csv.gz

The input has a line a digit: 64 pixels of an 8x8 image (0 to 16), row by row, then the label. Every
fifth line is kept for validation: the file's order is by writer, so that a split by position would
validate on other hands than it trains on. The output is IDX (unsigned bytes, [N, 8, 8] and [N]) in
gz, the same bytes whenever it is made.
"""

import csv
import gzip
import pathlib
import struct
import sys

PIXELS = 64


def write_idx(path, dims, elements):
    header = struct.pack(f">BBBB{len(dims)}I", 0, 0, 8, len(dims), *dims)
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(header + bytes(elements))


def write_part(folder, part, rows):
    pixels = [value for row in rows for value in row[:PIXELS]]
    labels = [row[PIXELS] for row in rows]
    write_idx(folder / f"digits-{part}-images.gz", (len(rows), 8, 8), pixels)
    write_idx(folder / f"digits-{part}-labels.gz", (len(rows),), labels)
    print(f"{part}: {len(rows)} digits")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with gzip.open(sys.argv[1], "rt", newline="") as lines:
        rows = [[int(float(value)) for value in row] for row in csv.reader(lines)]
    if not rows or any(len(row) != PIXELS + 1 for row in rows):
        sys.exit(f"{sys.argv[1]}: want {PIXELS} pixels and a label on every line")
    folder = pathlib.Path(__file__).resolve().parent
    write_part(folder, "train", [row for i, row in enumerate(rows) if i % 5 != 4])
    write_part(folder, "test", [row for i, row in enumerate(rows) if i % 5 == 4])


if __name__ == "__main__":
    main()
