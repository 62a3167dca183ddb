"""How much context can a model use? A search, and what it says.

Here the model is simulated: it ends at 4,000 tokens.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import needlepoint

with tempfile.TemporaryDirectory() as work:
    text = Path(work) / "harbour.txt"
    days = (
        f"On day {day} the harbour saw {day * 7 % 40} ships come in and {day * 3 % 30} leave." for day in range(900)
    )
    text.write_text(" ".join(days), encoding="utf-8")
    found = needlepoint.find_limit(
        model="simulated:cliff,at=4k",
        corpus=f"harbour={text}",
        needle_set="number",
        max_length="16k",
        work_dir=str(Path(work) / "runs"),
    )

low, high = found.interval or (None, None)
print(f"Effective length: about {found.length:,} tokens (95%: {low:,} to {high:,})")
print(f"Certified: at least {found.certified:,} tokens at {found.limit.threshold:.0%}")
for spent in found.limit.spent:
    print(f"{spent.phase}: {spent.trials} trials, {spent.tokens:,} uncached tokens")
print(f"It ended because {found.limit.end.why}.")
