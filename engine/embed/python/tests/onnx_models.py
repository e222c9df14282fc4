"""Two models as their packages ship them, judged against onnxruntime: magika,
which tells what kind of file bytes are, and silero-vad, which hears speech.

    python -m unittest onnx_models
    CLEAVE_SPEECH=speech.wav python -m unittest onnx_models

magika reads the files of Python's library beside this one, silero-vad the sound
in CLEAVE_SPEECH, or one that is made here. Prints errors and times.
"""

from __future__ import annotations

import glob
import importlib.util
import json
import os
import time
import unittest
import wave

import numpy as np

from onnx_testing import HAVE_RUNTIME, WHY_RUNTIME, runtime

if HAVE_RUNTIME:
    import cleave
    from cleave.onnx import import_onnx


def _folder(package: str) -> str | None:
    spec = importlib.util.find_spec(package)
    return next(iter(spec.submodule_search_locations)) if spec else None


MAGIKA = _folder("magika")
SILERO = _folder("silero_vad")


def _best(function, turns: int = 7) -> float:
    """The least milliseconds of some calls."""
    times = []
    for _ in range(turns):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def _error(got, want) -> float:
    return max(float(np.abs(g - w).max()) for g, w in zip(got, want))


def file_features(content: bytes) -> np.ndarray:
    """A file as magika's model reads it: 1024 bytes of either end."""
    block, half = 4096, 1024
    head = content[:block].lstrip()[:half]
    tail = content[-block:].rstrip()[-half:]
    row = np.full(2 * half, 256, np.int32)
    row[:len(head)] = list(head)
    row[2 * half - len(tail):] = list(tail)
    return row


@unittest.skipUnless(HAVE_RUNTIME and MAGIKA,
                     WHY_RUNTIME + ", or magika is not (3 tests)")
class Magika(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = os.path.join(MAGIKA, "models", "standard_v3_3")
        cls.path = os.path.join(folder, "model.onnx")
        with open(os.path.join(folder, "config.min.json"),
                  encoding="utf-8") as file:
            cls.labels = json.load(file)["target_labels_space"]
        library = os.path.dirname(os.__file__)
        paths = sorted(glob.glob(library + "/*.py"))[:24]
        paths += sorted(glob.glob(library + "/*/*.pyc"))[:6]
        paths += [cls.path, os.path.join(MAGIKA, "__init__.py")]
        paths += sorted(glob.glob(MAGIKA + "/**/*.json", recursive=True))[:4]
        paths += sorted(glob.glob(MAGIKA + "/**/*.md", recursive=True))[:4]
        rows = []
        for path in paths:
            with open(path, "rb") as file:
                rows.append(file_features(file.read()))
        cls.files = np.stack(rows)
        cls.judge = staticmethod(runtime(cls.path))
        cls.model = import_onnx(cls.path)

    def test_labels(self):
        got = self.model(self.files)
        want, = self.judge(bytes=self.files)
        error, ours, theirs = _error([got], [want]), *self._from_truth(
            got, want)
        self.assertLess(ours, 4 * theirs + 1e-6)
        np.testing.assert_array_equal(got.argmax(1), want.argmax(1))
        found = {self.labels[i] for i in got.argmax(1)}
        self.assertIn("python", found)
        one = self.files[:1]
        print(f"magika: {len(self.files)} files, {len(found)} labels, all "
              f"equal; error {error:.2g}, from f64 {ours:.2g}, "
              f"onnxruntime's {theirs:.2g}; one file "
              f"{_best(lambda: self.model(one)):.1f} ms, onnxruntime "
              f"{_best(lambda: self.judge(bytes=one)):.1f} ms; eight files "
              f"{_best(lambda: self.model(self.files[:8])):.1f} ms, "
              f"{_best(lambda: self.judge(bytes=self.files[:8])):.1f} ms")

    def _from_truth(self, got, want):
        """The errors of both against the same rules in double precision: a
        variance that cancels makes some files hard in single precision."""
        rules = cleave.load(self.model.source.replace("f32", "f64"))
        wide = [p.astype(np.float64) if p.dtype == np.float32 else p
                for p in self.model.parameters.values()]
        truth = rules.fn.model(self.files, *wide)
        return _error([got], [truth]), _error([want], [truth])

    def test_differentiates_in_a_parameter(self):
        name = next(n for n, a in self.model.parameters.items()
                    if a.shape == (1, len(self.labels)))
        x = self.files[:1]

        def sure(bias):
            return self.model.apply({**self.model.parameters, name: bias},
                                    x)[0, 3]

        slope = cleave.grad(sure)(self.model.parameters[name])
        p = self.model(x)[0]
        want = p[3] * ((np.arange(len(p)) == 3) - p)
        np.testing.assert_allclose(slope[0], want, rtol=1e-3, atol=1e-7)

    def test_batches(self):
        groups = self.files[:4].reshape(2, 2, -1)
        np.testing.assert_allclose(
            cleave.vmap(self.model)(groups).reshape(4, -1),
            self.model(self.files[:4]), rtol=1e-4, atol=1e-6)


def sound() -> np.ndarray:
    """Mono at 16 kHz, in chunks of 512 behind the last 64 of the one before."""
    path = os.environ.get("CLEAVE_SPEECH")
    if path:
        with wave.open(path) as file:
            rate = file.getframerate()
            data = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            data = data.reshape(-1, file.getnchannels())[:, 0]
        step = rate // 16000
        data = data[:len(data) // step * step].reshape(-1, step).mean(1) / 2**15
    else:
        t = np.arange(16000) / 16000
        pitch = 140 * t + 3 * np.sin(2 * np.pi * 3 * t)
        data = sum(np.sin(2 * np.pi * k * pitch) / k for k in range(1, 20))
        data = data * 0.1 * (1 + np.sin(2 * np.pi * 4 * t))
        data += 0.002 * np.random.default_rng(0).standard_normal(len(t))
    data = data.astype(np.float32)
    count = len(data) // 512
    padded = np.concatenate([np.zeros(64, np.float32), data])
    return np.stack([padded[512 * i:512 * i + 576] for i in range(count)])


@unittest.skipUnless(HAVE_RUNTIME and SILERO,
                     WHY_RUNTIME + ", or silero-vad is not (3 tests)")
class Silero(unittest.TestCase):

    def _path(self, name: str) -> str:
        return os.path.join(SILERO, "data", name)

    def _stream(self, model, run):
        """Probabilities of speech chunk by chunk, with the state of each."""
        state = np.zeros((2, 1, 128), np.float32)
        other = state
        worst, speech, same = 0.0, 0, True
        for chunk in sound()[:60]:
            got, state = model(chunk[None], state)
            want, other = run(input=chunk[None], state=other)
            worst = max(worst, _error([got, state], [want, other]))
            same = same and (got[0, 0] > 0.5) == (want[0, 0] > 0.5)
            speech += int(want[0, 0] > 0.5)
        self.assertTrue(same)
        self.assertLess(worst, 1e-4)
        return worst, speech

    def test_sequence(self):
        """An LSTM over all chunks at once, as a scan."""
        path = self._path("silero_vad_16k_sequence.onnx")
        model, run = import_onnx(path), runtime(path)
        x, zero = sound()[:20], np.zeros((1, 1, 128), np.float32)
        got, want = model(x, zero, zero), run(input=x, h=zero, c=zero)
        error = _error(got, want)
        self.assertLess(error, 1e-4)
        print(f"silero sequence of {len(x)}: error {error:.2g}; "
              f"{_best(lambda: model(x, zero, zero)):.1f} ms, onnxruntime "
              f"{_best(lambda: run(input=x, h=zero, c=zero)):.1f} ms")

    def test_nested_branches(self):
        """25 Ifs, decided by sizes and by the rate where both are given."""
        path = self._path("silero_vad.onnx")
        rate = np.array(16000)
        model = import_onnx(path, values={"sr": rate}, sizes={
            "input_0": 1, "input_1": 576, "state_1": 1})
        run = runtime(path)
        self.assertNotIn("cond(", model.source)
        error, speech = self._stream(
            model, lambda **a: run(**a, sr=rate))
        x, state = sound()[:1], np.zeros((2, 1, 128), np.float32)
        print(f"silero: {speech} chunks of speech, error {error:.2g}; "
              f"{_best(lambda: model(x, state)):.2f} ms, onnxruntime "
              f"{_best(lambda: run(input=x, state=state, sr=rate)):.2f} ms")

    def test_one_branch_at_run_time(self):
        """The same with the rate as an input: `cond`."""
        path = self._path("silero_vad_op18_ifless.onnx")
        model = import_onnx(path)
        self.assertIn("cond(", model.source)
        run, rate = runtime(path), np.array(16000)
        error, speech = self._stream(
            lambda x, state: model(x, rate, state),
            lambda **a: run(**a, sr=rate))
        print(f"silero with a rate: {speech} chunks of speech, "
              f"error {error:.2g}")


if __name__ == "__main__":
    unittest.main()
