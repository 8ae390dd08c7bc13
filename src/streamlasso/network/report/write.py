"""All files of a run: tables, figures drawn from them, the page, and the settings."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from streamlasso import __version__
from streamlasso._files import remove_leftovers_in
from streamlasso.network.options import Model
from streamlasso.network.report.figures import write_figures
from streamlasso.network.report.files import REPORT, write_settings, write_tables
from streamlasso.network.report.group import Group
from streamlasso.network.report.page import write_network_page
from streamlasso.network.report.tables import edge_table, lam_table


def write_report(out: Path, group: Group, model: Model, sources: dict[str, Any]) -> None:
    """Write the run of a group to `out`, which is created if needed.

    sources : where the data came from, for run.json and the page
    """
    lam, edges = lam_table(group), edge_table(group)
    out.mkdir(parents=True, exist_ok=True)
    remove_leftovers_in(out)
    settings = {
        "model": asdict(model),
        "streamlasso": __version__,
        **sources,
        "design": {**asdict(group.design), "events": str(group.design.events or "")},
    }
    write_tables(out, group, lam, edges)
    figures = write_figures(out, lam, edges, group)
    write_network_page(out / REPORT, group, edges, figures, settings)
    write_settings(out, group, settings)
