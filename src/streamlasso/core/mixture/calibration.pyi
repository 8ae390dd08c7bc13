from typing import Self, final

from streamlasso.core.base.state import Stateful
from streamlasso.families.base import Family

@final
class Calibration(Stateful):
    def __new__(cls, family: Family) -> Self: ...
    def line(self) -> tuple[float, float]: ...
    def learn(self, y: float, eta: float, weight: float) -> None: ...
