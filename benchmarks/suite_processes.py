"""What only a fresh process can tell: time of an import, peak memory of a piece of work."""

import json
import os
import subprocess
import sys

IMPORT = """
import time
started = time.perf_counter()
{code}
print(time.perf_counter() - started)
"""
MEMORY = """
import json, re, resource
from pathlib import Path

def now(field):
    try:
        return 1024 * int(re.search(field + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
    except OSError:
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

{before}
try:
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
except OSError:
    pass
start = now("VmRSS")
{work}
print(json.dumps({{"peak": now("VmHWM") - start, "kept": kept}}))
"""
"""The peak is VmHWM: the process's ru_maxrss would count what its parent held when it started it."""


def seconds_of_import(code: str) -> float:
    """Seconds of `code` in a fresh interpreter, its own start not counted."""
    return float(_run(IMPORT.format(code=code)))


def peak_memory(before: str, work: str) -> tuple[int, int]:
    """Bytes that `work` needs at its peak beyond what the process holds after `before`, and those it says it keeps."""
    facts = json.loads(_run(MEMORY.format(before=before, work=work)))
    return facts["peak"], facts["kept"]


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode:
        raise RuntimeError(f"a process failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return done.stdout.strip().splitlines()[-1]
