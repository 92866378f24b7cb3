"""The report as one HTML page that needs nothing else: charts are SVG; scripts choose and copy."""

from reports.page.index import index
from reports.page.report import fragment, html

__all__ = ["fragment", "html", "index"]
