"""The kinds of experts that compete in a mixture, one file each."""

from streamlasso.core.experts import models, path, ridge

#: Each has `groups(n_features, settings, memories, starts)`: its groups for the memories that stay, and those that
#: restart.
KINDS = (path, models, ridge)
