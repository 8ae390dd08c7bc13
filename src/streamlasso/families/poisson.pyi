from streamlasso.families.base import BuiltIn

NEAR_ZERO: float
LEAST_DISPERSION: float

class Poisson(BuiltIn): ...
