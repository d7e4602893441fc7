"""The same commands on other machines, as far as one machine can play them: other instructions, libraries, locales, limits.

    python benchmarks/any_machine.py                                  everything that can be tried here
    python benchmarks/any_machine.py --only locale --only zone        these kinds
    python benchmarks/any_machine.py --python .venv-minimum/bin/python --only python     another Python that has topnrank

Commands train two models from a CSV, write all lists, and evaluate. Where nothing but threads, processes, locale, time zone
or folders differ, all files must be the same bytes; on another processor, BLAS, Python or NumPy, scores may differ in the
last digits: by at most `NEAR` of the largest.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NEAR = 1e-3
"""Of the largest score."""
DATA = "Bücher İıß.csv"
"""A name that ASCII cannot print."""
TEST = "test.csv"
COMMANDS = [
    f"train|{DATA}|-o|rated.safetensors|-q|--set|task=rated|--set|factors=6|--set|epochs=4|--holdout|0.2",
    f"train|{DATA}|-o|ease.safetensors|-q|-m|ease|--set|regularization=20",
    "recommend|rated.safetensors|--all|-q|-o|lists.csv",
    "recommend|ease.safetensors|--user|é-3|-o|one.csv|-q",
    f"evaluate|ease.safetensors|{TEST}|-q|--per-user|users.csv",
    "recommend|ease.safetensors|--user|ı-4",
]
WORK = """
import os, sys
sys.path.insert(0, {source!a})
from topnrank.cli.exit_codes import guarded
for command in {commands!a}:
    code = guarded(command.split("|"))
    if code:
        sys.exit(code)
"""
FILES = ("rated.safetensors", "ease.safetensors", "lists.csv", "one.csv", "users.csv")


@dataclass(frozen=True)
class Machine:
    """Something that differs from here."""

    kind: str
    title: str
    variables: dict[str, str]
    same: bool = True
    """Whether files must be the same bytes, not only nearly the same scores"""
    python: str = sys.executable
    before: Sequence[str] = ()
    """A command that runs the rest of its arguments"""


@dataclass(frozen=True)
class Found:
    """What came of it."""

    machine: Machine
    says: str
    fits: bool
    seconds: float


def machines(pythons: Sequence[str]) -> Iterator[Machine]:
    """All that can be tried here."""
    for core in ("Nehalem", "Haswell", "SkylakeX"):
        yield Machine("blas", f"OpenBLAS for {core}", {"OPENBLAS_CORETYPE": core}, same=False)
    for name, what in (("x86-64", "plain x86-64: no AVX"), ("haswell", "AVX2"), ("skylake-avx512", "AVX-512")):
        variables = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""} if name == "x86-64" else {"NUMBA_CPU_NAME": name}
        if name != "skylake-avx512" or "avx512f" in Path("/proc/cpuinfo").read_text():
            yield Machine("processor", f"kernels for {what}", variables, same=False)
    for layer in ("omp", "workqueue", "tbb"):
        if layer != "tbb" or Path(sys.prefix, "lib", "libtbb.so.12").exists():
            threads = {"NUMBA_THREADING_LAYER": layer, "LD_LIBRARY_PATH": str(Path(sys.prefix, "lib"))}
            yield Machine("threads", f"4 threads, layer {layer}", threads | {"NUMBA_NUM_THREADS": "4"})
    yield Machine("locale", "locale C", {"LC_ALL": "C"})
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.lower().split()
    for name in ("tr_TR", "de_DE", "ja_JP"):
        if f"{name}.utf8".lower() in known:
            yield Machine("locale", f"locale {name}.UTF-8", {"LC_ALL": f"{name}.UTF-8"})
    for zone in ("Asia/Kolkata", "Pacific/Apia", "America/St_Johns"):
        yield Machine("zone", f"time zone {zone}", {"TZ": zone})
    if os.getuid() == 0 and shutil.which("unshare"):
        mount = 'mount -t tmpfs -o ro none /mnt && HOME=/mnt XDG_CACHE_HOME= exec "$@"'
        yield Machine(
            "folders", "read-only home, no cache of kernels", {}, before=["unshare", "-m", "sh", "-c", mount, "sh"]
        )
    yield from _less_than_a_core()
    for python in pythons:
        said = "import sys, numpy, numba; print('Python %d.%d.%d' % sys.version_info[:3], 'numpy', numpy.__version__)"
        done = subprocess.run([python, "-c", said], capture_output=True, text=True, check=True)
        there = os.path.abspath(python)  # links are kept: a virtual environment is one
        yield Machine("python", done.stdout.strip(), {}, same=False, python=there)


def _less_than_a_core() -> Iterator[Machine]:
    """A control group with a third of a core, of either version."""
    if os.getuid() or not shutil.which("mkdir"):
        return
    for root, limit in (
        ("/sys/fs/cgroup/cpu", "echo 100000 > $g/cpu.cfs_period_us && echo 33000 > $g/cpu.cfs_quota_us"),
        ("/sys/fs/cgroup", 'echo "33000 100000" > $g/cpu.max'),
    ):
        if Path(root, "cgroup.procs").exists() and os.access(root, os.W_OK):
            enter = f'g={root}/topnrank-$$; mkdir $g && {limit} && echo $$ > $g/cgroup.procs && exec "$@"'
            yield Machine("cores", "a container with a third of a core", {}, before=["sh", "-c", enter, "sh"])
            return


def run(machine: Machine, folder: Path) -> Found:
    """Runs the commands there; what they leave stays in `folder`."""
    folder.mkdir()
    for name, content in (DATA, csv(test=False)), (TEST, csv(test=True)):
        (folder / name).write_text(content, encoding="utf-8")
    script = WORK.format(source=str(Path(__file__).parents[1] / "src"), commands=COMMANDS)
    begin = time.perf_counter()
    done = subprocess.run(
        [*machine.before, machine.python, "-c", script],
        env=os.environ | machine.variables,
        cwd=folder,
        capture_output=True,
        check=False,
    )
    seconds = time.perf_counter() - begin
    if done.returncode:
        return Found(
            machine, done.stderr.decode(errors="replace").strip()[-300:] or str(done.returncode), False, seconds
        )
    return Found(machine, "", True, seconds)


def compared(found: Found, folder: Path, reference: Path) -> Found:
    """How what is in `folder` differs from what this machine made."""
    import topnrank as tnr

    warnings.simplefilter("ignore", tnr.TopNRankWarning)  # lists of a rated model
    if not found.fits:
        return found
    differ = [name for name in FILES if (folder / name).read_bytes() != (reference / name).read_bytes()]
    if not differ:
        return Found(found.machine, "the same bytes", True, found.seconds)
    if found.machine.same:
        return Found(found.machine, f"other bytes: {', '.join(differ)}", False, found.seconds)
    worst, equal = 0.0, []
    for name in FILES[:2]:
        one, two = tnr.load(reference / name), tnr.load(folder / name)
        users = np.arange(len(one.user_ids_))
        here, there = one.score_block(users), two.score_block(users)
        worst = max(worst, float(np.abs(here - there).max() / np.abs(here).max()))
        equal.append(np.mean([_items(one, user) == _items(two, user) for user in one.user_ids_.tolist()]))
    says = f"scores within {worst:.1e} of the largest; {100 * min(equal):.0f} % of the lists of ten are equal"
    return Found(found.machine, says, worst <= NEAR, found.seconds)


def _items(model: object, user: object) -> list[object]:
    return model.recommend([user], n=10)["item"].to_pylist()  # type: ignore[attr-defined, no-any-return]


def csv(*, test: bool) -> str:
    """Ratings with ids and times as people write them."""
    rng = np.random.default_rng(4)
    rows = []
    for user in range(80):
        for item in sorted(rng.choice(60, 20, replace=False).tolist()):
            value = rng.integers(1, 11) / 2
            moment = f"2021-03-28 0{rng.integers(1, 4)}:30:{item:02d}"  # some places have no such hour
            if test == (user % 5 == item % 5):
                rows.append(f"{'ıİßé'[user % 4]}-{user},Artikel {item},{value},{moment}\n")
    return "user,item,rating,timestamp\n" + "".join(rows)


def main() -> int:
    """1 if anything does not fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--only", action="append", help="blas, processor, threads, locale, zone, folders, cores, python"
    )
    parser.add_argument(
        "--python", action="append", default=[], help="another Python, which has topnrank's dependencies"
    )
    parser.add_argument("--keep", type=Path, help="leave the files of this machine in this folder")
    parser.add_argument("--against", type=Path, help="compare with the files that --keep left on another machine")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        reference = Path(made, "reference")
        here = run(Machine("here", "here", {}), reference)
        assert here.fits, here.says
        if given.keep is not None:
            shutil.copytree(reference, given.keep, dirs_exist_ok=True)
        print("| | |\n|---|---|", flush=True)
        fit = True
        if given.against is not None:
            found = compared(
                Found(Machine("machine", "another machine", {}, same=False), "", True, 0), given.against, reference
            )
            print(f"| {found.machine.title} | {'' if found.fits else 'FAILED: '}{found.says} |", flush=True)
            fit &= found.fits
        for number, machine in enumerate(machines(given.python)):
            if given.only is None or machine.kind in given.only:
                folder = Path(made, str(number))
                found = compared(run(machine, folder), folder, reference)
                print(f"| {machine.title} | {'' if found.fits else 'FAILED: '}{found.says} |", flush=True)
                fit &= found.fits
    return int(not fit)


if __name__ == "__main__":
    sys.exit(main())
