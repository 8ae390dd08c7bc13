"""The groups of experts that compete in a mixture, one file each."""

from streamlasso.core.mixture.groups import drifting, exact, nothing, restarting, steady
from streamlasso.core.mixture.groups.parts import Parts

#: Each has `join(parts)`, which adds its experts and its groups.
KINDS = (steady, exact, restarting, drifting, nothing)


def composed(n_features, settings):
    """All experts of an engine with these settings, and the groups that average them."""
    parts = Parts(n_features, settings)
    for kind in KINDS:
        kind.join(parts)
    return parts.experts, parts.groups
