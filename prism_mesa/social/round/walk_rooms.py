"""Memory for what comes about while agents walk, used again from round to round: it is no state of the platform."""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.lanes import own_lines
from prism_mesa.kernels.programs import Programs
from prism_mesa.kernels.walking.steps import ENGAGEMENTS, IMPRESSIONS, MOVES, STOPPED
from prism_mesa.kernels.walking.world import WalkOutput
from prism_mesa.statechart import STATES

type Int32 = npt.NDArray[np.int32]
type Columns = tuple[Int32, ...]


class CameAbout(NamedTuple):
    """What one part of the agents has brought about in a walk, as columns (see `WalkOutput`)."""

    stopped: Int32
    impressions: Columns
    engagements: Columns
    moves: Columns


class WalkRoom:
    """Room for what one part of the agents brings about; what is noted stays until the next round.

    Attributes:
        out: What kernels write to.
    """

    def __init__(self, ticks: int, n_sets: int, programs: Programs) -> None:
        self.out = WalkOutput(
            size=own_lines(4, np.int64),
            counts=own_lines((ticks, len(STATES)), np.int64),
            answered=own_lines(n_sets, np.int64),
            stopped=np.empty((4, 0), np.int32),
            impressions=np.empty((3, 0), np.int32),
            engagements=np.empty((4, 0), np.int32),
            moves=np.empty((5, 0), np.int32),
            gave_value=own_lines(len(programs.reads_post), np.uint8),
            register=own_lines(programs.registers.shape, np.float64),
        )
        self.out.register[:] = programs.registers
        self._before = self.out.size.copy()

    def begin_round(self) -> None:
        """Let go of what is noted."""
        self.out.size[:] = 0

    def begin_walk(self) -> None:
        """Count from here on what comes about."""
        self.out.size[STOPPED] = 0
        self._before = self.out.size.copy()
        for counted in (self.out.counts, self.out.answered, self.out.gave_value):
            counted[:] = 0

    def make_room(self, stopped: int = 0, impressions: int = 0, engagements: int = 0, moves: int = 0) -> None:
        """Make room for so many more of each; what is noted keeps its place."""
        out, used = self.out, self.out.size.tolist()
        self.out = out._replace(
            stopped=_grown(out.stopped, used[STOPPED], stopped),
            impressions=_grown(out.impressions, used[IMPRESSIONS], impressions),
            engagements=_grown(out.engagements, used[ENGAGEMENTS], engagements),
            moves=_grown(out.moves, used[MOVES], moves),
        )

    def came_about(self) -> CameAbout:
        """Return what has come about since the walk began: views of this memory."""
        out, before, now = self.out, self._before.tolist(), self.out.size.tolist()
        events = [
            tuple(columns[:, before[place] : now[place]])
            for place, columns in ((IMPRESSIONS, out.impressions), (ENGAGEMENTS, out.engagements), (MOVES, out.moves))
        ]
        return CameAbout(out.stopped[:, : now[STOPPED]], *events)


class WalkRooms:
    """The rooms of a platform: one for each part into which its agents are cut."""

    def __init__(self) -> None:
        self._rooms: list[WalkRoom] = []
        self._made_for: tuple[int, Programs] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return other ones, of which there are none yet."""
        return type(self)()

    def begin_round(self) -> None:
        """Let go of what is noted in all rooms."""
        for room in self._rooms:
            room.begin_round()

    def of(self, parts: int, ticks: int, n_sets: int, programs: Programs) -> list[WalkRoom]:
        """Return the first `parts` rooms, ready for a walk."""
        if self._made_for is None or self._made_for[0] != ticks or self._made_for[1] is not programs:
            self._rooms, self._made_for = [], (ticks, programs)
        while len(self._rooms) < parts:
            self._rooms.append(WalkRoom(ticks, n_sets, programs))
        for room in self._rooms[:parts]:
            room.begin_walk()
        return self._rooms[:parts]


def _grown(columns: Int32, used: int, more: int) -> Int32:
    """Return columns with room for `more` entries behind those that are used."""
    if used + more <= columns.shape[1]:
        return columns
    grown = np.empty((len(columns), max(used + more, 2 * columns.shape[1])), np.int32)
    grown[:, :used] = columns[:, :used]
    return grown
