"""Settings of what tokens cost."""

from __future__ import annotations

from pydantic import BaseModel

from .ask.budget import Prices, read_prices
from .errors import UsageError
from .fields import Number, Text


class PriceFields(BaseModel):
    """What of a run's settings concerns prices: by flags, per million tokens, or by a file with many models' prices."""

    price_in: Number | None = None
    price_out: Number | None = None
    price_cached: Number | None = None
    price_cache_write: Number | None = None
    prices: Text | None = None

    def prices_of(self, model: str) -> Prices | None:
        """What tokens cost: by flags, or the file's entry for this model."""
        if self.price_in is not None or self.price_out is not None:
            if self.price_in is None or self.price_out is None:
                raise UsageError("--price-in and --price-out go together: a run has prompt and answer tokens.")
            return Prices(
                input=self.price_in,
                output=self.price_out,
                cached_input=self.price_cached,
                cache_write=self.price_cache_write,
            )
        return None if self.prices is None else read_prices(self.prices, model)
