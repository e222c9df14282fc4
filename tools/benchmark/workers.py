"""The programs that tools/bench compares, as processes that time themselves on
request, and the virtual environments that the peers run in."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

FOLDER = pathlib.Path(__file__).absolute().parent

# The virtual environments, and what is in them.
ENVIRONMENTS = {
    "numpy": ["numpy==2.4.6"],
    "torch": ["torch==2.15.0", "numpy==2.4.6"],
    "jax": ["jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6"],
}
# Peers, by the environment of each.
PEERS = {
    "numpy": "numpy",
    "torch": "torch",
    "torch.compile": "torch",
    "jax": "jax",
}


class WorkerError(Exception):
    """A worker that could not do what it was told; says which and why."""


class NotThere(Exception):
    """A peer that has no such function."""


def peers_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "cleave" / "peers"


def peer_python(peer):
    """The interpreter of a peer's environment; None if it is not there, or has
    other versions than the ones to compare with."""
    folder = peers_folder() / PEERS[peer]
    try:
        installed = (folder / "requirements.txt").read_text().split()
    except OSError:
        return None
    if installed != ENVIRONMENTS[PEERS[peer]]:
        return None
    return folder / "bin" / "python"


def install_peers(peers):
    """Makes the environments of `peers` that are missing."""
    for name in dict.fromkeys(PEERS[peer] for peer in peers):
        if peer_python(name):
            continue
        folder = peers_folder() / name
        print(f"installing {' '.join(ENVIRONMENTS[name])} into {folder}",
              file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(folder)],
                              check=False)
        if made.returncode:
            raise WorkerError(
                "python3 -m venv failed; on Debian, `apt-get install "
                "python3-venv python3-dev` brings what it needs")
        installed = subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet"] +
            ENVIRONMENTS[name], check=False)
        if installed.returncode:
            raise WorkerError(f"pip could not install {name}: see above")
        # Last, so that an environment that is there is whole.
        (folder / "requirements.txt").write_text(
            "\n".join(ENVIRONMENTS[name]) + "\n")


def environment(threads, scratch):
    """The variables of every worker: as many threads for all, and memory that
    the C library keeps instead of asking the system for it at each call."""
    variables = dict(os.environ)
    for name in ("OMP", "MKL", "OPENBLAS"):
        variables[f"{name}_NUM_THREADS"] = str(threads)
    variables.update({
        # Threads that wait for work give way at once, or soon (0.1 ms), so that
        # one worker does not slow the next one down.
        "OMP_WAIT_POLICY": "passive",
        "KMP_BLOCKTIME": "0",
        "OPENBLAS_THREAD_TIMEOUT": "18",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONDONTWRITEBYTECODE": "1",
    })
    # The program would take others' settings of these variables for its own.
    for name in ("XLA_FLAGS", "JAX_ENABLE_X64", "JAX_COMPILATION_CACHE_DIR"):
        variables.pop(name, None)
    return variables


class Worker:
    """A process that answers one line of JSON for each line."""

    def __init__(self, name, command, folder, threads):
        """Starts it; `folder` is where it runs and keeps its files."""
        self.name = name
        self._log = open(folder / f"{name}.log", "w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [str(word) for word in command], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            env=environment(threads, folder),
            # Ctrl-C is for the driver, which keeps what was measured.
            start_new_session=True)
        self.about = self._read()

    def _read(self):
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._log.seek(0)
            said = self._log.read()[-2000:].strip()
            raise WorkerError(f"{self.name} ended with status "
                              f"{self._process.returncode}: {said}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.name}: {answer['error']}")
        if "absent" in answer:
            raise NotThere(answer["absent"])
        return answer

    def ask(self, *words):
        try:
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # _read says why
        return self._read()

    def close(self):
        self._process.kill()
        self._process.wait()
        # An interrupt may have left a line that nobody reads any more.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()


def cleave_command(program, rules, cache, threads):
    return [
        program, "--rules", rules, "--functions", FOLDER / "functions.rules",
        "--cache", cache, "--threads", threads
    ]


def peer_command(peer, threads):
    return [
        peer_python(peer), FOLDER / "peers" / "peer_worker.py", peer, threads
    ]
