"""make_wheel.py VERSION HALIDE OUT FILE=PLACE..: the wheel of the package,
unrepaired.

HALIDE is the requirements file that pins Halide. Each FILE goes to PLACE in the wheel. auditwheel then adds the shared libraries
that those need. The bytes depend on the files alone, so that two builds give
one wheel.
"""

import base64
import hashlib
import os
import sys
import zipfile

# The limited API of Python 3.11; auditwheel finds out the system's version.
TAG = "cp311-abi3-linux_x86_64"
# Halide promises no ABI from version to version: kernels are made by this one.
METADATA = """\
Metadata-Version: 2.1
Name: cleave
Version: {version}
Summary: Operator decompositions that batch, differentiate, compile and are checked
Requires-Python: >=3.11
Requires-Dist: numpy
Requires-Dist: {halide}
Provides-Extra: torch
Requires-Dist: torch; extra == "torch"
Provides-Extra: jax
Requires-Dist: jax; extra == "jax"
Provides-Extra: onnx
Requires-Dist: onnx; extra == "onnx"
"""
WHEEL = """\
Wheel-Version: 1.0
Generator: cleave
Root-Is-Purelib: false
Tag: {tag}
"""


def record_line(place, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return f"{place},sha256={digest.decode().rstrip('=')},{len(data)}\n"


def main():
    version, requirements, out, *pairs = sys.argv[1:]
    with open(requirements, encoding="utf-8") as file:
        halide = file.read().split()[0]
    info = f"cleave-{version}.dist-info"
    files = {}
    for pair in pairs:
        path, place = pair.rsplit("=", 1)
        with open(path, "rb") as file:
            files[place] = file.read()
    files[f"{info}/METADATA"] = METADATA.format(
        version=version, halide=halide).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(tag=TAG).encode()
    record = "".join(record_line(place, data)
                     for place, data in sorted(files.items()))
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    os.makedirs(out, exist_ok=True)
    name = os.path.join(out, f"cleave-{version}-{TAG}.whl")
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for place, data in sorted(files.items()):
            # Dates before 1980 are none to a zip file.
            entry = zipfile.ZipInfo(place, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            mode = 0o755 if ".so" in os.path.basename(place) else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, data)


if __name__ == "__main__":
    main()
