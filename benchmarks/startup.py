"""How long needlepoint takes to start: importing it, and showing its help; the best of several runs.

python benchmarks/startup.py [--runs 9]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

HEAVY = ("torch", "transformers", "numpy", "xllamacpp", "vl_convert", "ray")
COMMANDS = {
    "python, doing nothing": [sys.executable, "-c", "pass"],
    "import needlepoint": [sys.executable, "-c", "import needlepoint"],
    "needlepoint --help": [sys.executable, "-m", "needlepoint.cli", "--help"],
    "needlepoint prompts --help": [sys.executable, "-m", "needlepoint.cli", "prompts", "--help"],
    "needlepoint eval --help": [sys.executable, "-m", "needlepoint.cli", "eval", "--help"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    for name, command in COMMANDS.items():
        best = min(seconds(command) for _ in range(options.runs))
        print(f"{name:28} {best:.3f} s")
    code = f"import needlepoint, sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    print(f"heavy packages that the import loads: {loaded or 'none'}")


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
