"""The worker of one peer: runs inside the peer's virtual environment and
answers the commands of cleave_worker.cc, less `copy`.

    python peer_worker.py numpy|torch|torch.compile|jax THREADS
"""

import json
import pathlib
import sys
import time

sys.dont_write_bytecode = True


def load_peer(name, threads):
    if name == "numpy":
        import peer_numpy as module
    elif name in ("torch", "torch.compile"):
        import peer_torch as module
    elif name == "jax":
        import peer_jax as module
    else:
        raise ValueError(f"no peer is called {name}")
    return module.Peer(threads, compiled=name == "torch.compile")


class NotThere(Exception):
    """The peer has no such function."""


class Worker:

    def __init__(self, peer):
        self.peer = peer
        self.prepared = {}

    def prepare(self, name, function, transform, *inputs):
        if transform != "none":
            function = f"{transform}({function})"
        if function not in self.peer.FUNCTIONS:
            raise NotThere(f"it has no {function}")
        arrays = []
        for word in inputs:
            path, dtype, shape = word.split(":")
            shape = [int(n) for n in shape.split("x") if n]
            arrays.append(
                self.peer.array(pathlib.Path(path).read_bytes(), dtype, shape))
        start = time.perf_counter_ns()
        call = self.peer.compile(self.peer.FUNCTIONS[function], arrays)
        compiled = time.perf_counter_ns() - start
        self.prepared[name] = call
        return {"compile_ns": compiled} if self.peer.compiles else {}

    def store(self, name, *paths):
        outputs = self.prepared[name]()
        outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
        if len(outputs) != len(paths):
            raise ValueError(f"{len(outputs)} outputs")
        for output, path in zip(outputs, paths):
            pathlib.Path(path).write_bytes(self.peer.bytes(output))
        return {}

    def run(self, name, samples, calls):
        call = self.prepared[name]
        calls = range(int(calls))
        clock = time.perf_counter_ns
        call()
        times = []
        for _ in range(int(samples)):
            start = clock()
            for _ in calls:
                call()
            times.append((clock() - start) / len(calls))
        return {"ns": times}

    def release(self, name):
        self.prepared.pop(name, None)
        return {}


def main():
    # The output of a library must not mix with the answers.
    answers = sys.stdout
    sys.stdout = sys.stderr
    peer = load_peer(sys.argv[1], int(sys.argv[2]))
    worker = Worker(peer)

    def answer(value):
        print(json.dumps(value), file=answers, flush=True)

    answer({"version": peer.version})
    for line in sys.stdin:
        command, *words = line.split()
        try:
            answer(getattr(worker, command)(*words))
        except NotThere as error:
            answer({"absent": str(error)})
        except Exception as error:  # pylint: disable=broad-except
            answer({"error": f"{type(error).__name__}: {error}"[:2000]})


if __name__ == "__main__":
    main()
