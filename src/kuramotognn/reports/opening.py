"""The first page of a report: what holds, where KuramotoGNN leads, and how much of the paper was run."""

from __future__ import annotations

from collections.abc import Sequence

from kuramotognn.reports.coverage import coverage_section, settings_section
from kuramotognn.reports.leads import leads_section
from kuramotognn.reports.paper_claims import claims_section
from kuramotognn.reports.parameter_grid import EXPERIMENT, headline_section
from kuramotognn.reports.result_tables import ExperimentResult
from kuramotognn.reports.sections import Section
from kuramotognn.sweeps.catalogue import experiments


def opening(results: Sequence[ExperimentResult]) -> list[Section]:
    """What the given experiments say, whether they were run or not; coverage where they are all there are."""
    by_name = {result.experiment.name: result for result in results}
    sections = [claims_section(by_name)]
    sections += [headline_section(by_name[EXPERIMENT])] if EXPERIMENT in by_name else []
    sections.append(leads_section(by_name))
    sections += [coverage_section(by_name), settings_section()] if by_name.keys() == experiments().keys() else []
    return [section for section in sections if section]
