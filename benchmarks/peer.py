"""EvalScope 1.14.1 in an environment of its own, to be measured beside needlepoint.

    python benchmarks/peer.py FOLDER

Sets it up in FOLDER, unless it is there already, and prints the two arguments that the benchmarks take. It needs the
package registry and about 3 GB; where that cannot be had it says why and ends with 1.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("evalscope[needle_haystack]==1.14.1", "tiktoken", "blobfile")
VOCABULARY = "dashscope==2.0.2"  # its wheel holds the Qwen vocabulary that EvalScope would take from a hub
TOKENIZER = r"""
import sys
from pathlib import Path
import dashscope
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import TikTokenConverter
words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
words += r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ranks = Path(dashscope.__file__).parent / "resources" / "qwen.tiktoken"
control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
made = TikTokenConverter(vocab_file=str(ranks), pattern=words, extra_special_tokens=control).converted()
PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>").save_pretrained(sys.argv[1])
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A Python that has EvalScope, and a folder with the Qwen3 tokenizer for it."""

    python: str
    tokenizer: str


class CannotInstall(Exception):
    """EvalScope cannot be set up here; the message says why."""


def peer(folder: Path) -> Peer:
    """EvalScope in `folder`, set up where it is missing. Raises CannotInstall."""
    python, tokenizer = folder / "env" / "bin" / "python", folder / "qwen3"
    if not python.exists():
        _run(sys.executable, "-m", "venv", str(folder / "env"))
    if not _has_evalscope(python):
        _run(str(python), "-m", "pip", "install", "-q", *PACKAGES)
        _run(str(python), "-m", "pip", "install", "-q", "--no-deps", VOCABULARY)
    if not (tokenizer / "tokenizer.json").is_file():
        _run(str(python), "-c", TOKENIZER, str(tokenizer))
    return Peer(str(python), str(tokenizer))


def _has_evalscope(python: Path) -> bool:
    code = "import importlib.metadata as m; assert m.version('evalscope') == '1.14.1'; import dashscope"
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise CannotInstall(lines[-1] if lines else f"{command[0]} ended with status {done.returncode}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        found = peer(Path(sys.argv[1]))
    except CannotInstall as reason:
        sys.exit(f"EvalScope 1.14.1 cannot be installed here: {reason}")
    print(f"--evalscope {found.python} --tokenizer {found.tokenizer}")
