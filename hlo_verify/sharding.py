"""Shardings: which shard of a tensor each device holds.

Every spelling (`sdy.sharding`, `mhlo.sharding`, HloSharding v1 to v3, a shardings file)
becomes one plain table of shard coordinates, so that nothing after this file knows how a
sharding was written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class Sharding:
    """A placement of one tensor on `devices` devices.

    `tiles[k]` is the number of shards along dimension k; `coordinates[d, k]` is the shard
    that device d holds along k; a shard has `ceil(size / tiles)` elements and starts at
    `coordinate * ceil(size / tiles)` (what lies past the end of the tensor is arbitrary).
    `addends[d]` numbers the addend that device d holds of an unreduced tensor (devices with
    equal coordinates and different addends hold values that are to be summed); None when the
    tensor is not unreduced. `only` is the one device that holds a maximal (single device)
    tensor, else None.
    """

    tiles: tuple[int, ...]
    coordinates: npt.NDArray[np.int64]
    addends: npt.NDArray[np.int64] | None = None
    only: int | None = None

    @property
    def devices(self) -> int:
        return int(self.coordinates.shape[0])
