"""What a worker needs: the program, its libraries, the rules.

    archive, arguments = make_bundle(program, rules, ["my.rules", "--seed=2"])
    folder = unpack_bundle(archive)      # on any machine
    command, environment, cwd = command_of(folder, cwd, ["check", *arguments])

Files stand in the archive at their absolute paths, below `tree`, so that
reports name them as a run on this machine does.
"""

import gzip
import hashlib
import io
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import time

# Libraries that a system has of its own: no copy of one may be put before it.
OF_GLIBC = ("ld-linux", "libc.", "libm.", "libdl.", "libpthread.", "librt.")
# Bundles that nobody used for so long are removed from a node.
SECONDS_KEPT = 7 * 24 * 3600
PROGRAM = "bin/cleave"
RULES_NAMES = (".rules", ".json")


def libraries(program):
    """The shared libraries that the program loads, but glibc."""
    listing = subprocess.run(["ldd", program], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    found = []
    for line in listing.splitlines():
        words = line.split()
        if "=>" not in words or words[0].startswith(OF_GLIBC):
            continue
        if words[2] == "not":
            raise OSError(f"{program} needs {words[0]}, which is not there")
        found.append(words[2])
    return found


def rule_files(path):
    """The file, or the rule files below a folder."""
    if not os.path.isdir(path):
        return [path]
    files = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        files += [os.path.join(folder, name) for name in sorted(names)
                  if name.endswith(RULES_NAMES)]
    return files


def relative(path):
    return os.path.relpath(path) if os.path.isabs(path) else path


def make_bundle(program, rules, arguments):
    """Returns the archive and the arguments as they are to be given there.

    Each argument that is the path of a file or a folder is shipped. `rules` is
    the folder of the shipped rules; "" for none.
    """
    entries = {PROGRAM: program}
    for library in libraries(program):
        entries["lib/" + os.path.basename(library)] = library
    shipped = [rules] if rules else []
    given = []
    for argument in arguments:
        if os.path.exists(argument):
            shipped.append(argument)
            argument = relative(argument)
        given.append(argument)
    for path in shipped:
        for file in rule_files(path):
            entries["tree" + os.path.abspath(file)] = file
    entries["rules"] = io.BytesIO(
        (relative(os.path.abspath(rules)) if rules else "").encode())
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name in sorted(entries):
            source = entries[name]
            content = source if isinstance(source, io.BytesIO) else None
            info = tarfile.TarInfo(name)
            info.mode = 0o755 if name == PROGRAM else 0o644
            if content is None:
                with open(source, "rb") as file:
                    content = io.BytesIO(file.read())
            info.size = len(content.getbuffer())
            archive.addfile(info, content)
    # The same bytes for the same files, whenever it is made.
    return gzip.compress(plain.getvalue(), compresslevel=6, mtime=0), given


def digest_of(archive):
    return hashlib.sha256(archive).hexdigest()


def own_folder():
    """The folder of bundles of this user, which nobody else may write to."""
    folder = os.path.join(tempfile.gettempdir(), f"cleave-farm-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    status = os.lstat(folder)
    if (not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or
            status.st_mode & 0o022):
        raise OSError(f"{folder} is not a folder of this user alone")
    return folder


def unpack_bundle(archive):
    """The folder with what is in it, unpacked once for a machine."""
    home = own_folder()
    folder = os.path.join(home, digest_of(archive))
    if not os.path.isdir(folder):
        for name in os.listdir(home):
            other = os.path.join(home, name)
            if time.time() - os.lstat(other).st_mtime > SECONDS_KEPT:
                shutil.rmtree(other, ignore_errors=True)
        # Whole or not at all: a worker may be killed here, and another one is
        # perhaps at the same.
        part = tempfile.mkdtemp(prefix="part-", dir=home)
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as bundle:
            bundle.extractall(part)  # its names are those of make_bundle
        try:
            os.rename(part, folder)
        except OSError:
            shutil.rmtree(part)
            if not os.path.isdir(folder):
                raise
    os.utime(folder)
    return folder


def command_of(folder, cwd, arguments):
    """The command line, its environment and where it runs."""
    with open(os.path.join(folder, "rules"), encoding="utf-8") as file:
        rules = file.read()
    environment = {
        "PATH": "/usr/bin:/bin",
        "LD_LIBRARY_PATH": os.path.join(folder, "lib"),
        "CLEAVE_RULES": rules,
        # Neither certificates nor kernels of the node's user.
        "CLEAVE_CACHE": "",
    }
    where = folder + "/tree" + cwd
    os.makedirs(where, exist_ok=True)
    return [os.path.join(folder, PROGRAM), *arguments], environment, where
