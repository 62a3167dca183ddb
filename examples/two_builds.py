"""A gate for CI: did the new build of an engine break long contexts? Exit code 1 where it did.

python examples/two_builds.py [OLD_URL NEW_URL MODEL]
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import needlepoint


def made_up_text(folder: Path) -> str:
    """A stand-in for a haystack, so that the example runs as it is."""
    dice = random.Random(7)
    words = "the ferry left before noon and nobody on the quay could say when it would be back from the islands".split()
    lines = [" ".join(dice.choices(words, k=12)).capitalize() + "." for _ in range(2_000)]
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    return str(folder / "text.txt")


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if len(sys.argv) == 4:
            old_url, new_url, model = sys.argv[1:]
            builds = {"model": model, "api_url": old_url}, {"model": model, "api_url": new_url}
        else:  # the new build is made up, too: it loses one fact in seven
            builds = {"model": "simulated:noise,p=0.02,seed=1"}, {"model": "simulated:noise,p=0.15,seed=2"}
        old = needlepoint.run_task(
            builds[0]
            | {
                "corpus": made_up_text(folder),
                "lengths": "500,1k,2k",
                "depths": "0:100:5",
                "replicates": 8,  # eight texts or more: the answer speaks of other texts, too
                "needle_set": "number",
                "work_dir": str(folder / "old"),
            }
        )
        new = needlepoint.run_task(builds[1] | {"prompts": str(old.folder), "work_dir": str(folder / "new")})
        found = needlepoint.compare(old.folder, new.folder, fail_if_worse=0.01, margin=0.02)
        print(found.markdown(most_flips=3))
        print("passed" if found.passed else "failed", f"{found.difference:+.1%}, p = {found.p_value:.2g}")
        return 0 if found.passed or len(sys.argv) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
