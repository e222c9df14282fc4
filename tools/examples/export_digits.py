#!/usr/bin/env python3
"""Writes digits.safetensors from scikit-learn's copy of the digits data.

    python3 -m venv venv && venv/bin/pip install scikit-learn safetensors
    venv/bin/python export_digits.py digits.safetensors

images: u8[1797, 8, 8], pixels from 0 to 16; labels: u8[1797], the digits. Both
stand in the order in which scikit-learn has them.
"""

import sys

import numpy
from safetensors.numpy import save_file
from sklearn.datasets import load_digits


def main():
    digits = load_digits()
    images = digits.images.astype(numpy.uint8)
    labels = digits.target.astype(numpy.uint8)
    if not (images == digits.images).all():
        sys.exit("a pixel is no small integer")
    save_file({"images": images, "labels": labels}, sys.argv[1])


if __name__ == "__main__":
    main()
