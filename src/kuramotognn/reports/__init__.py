"""Results: statistics, tables beside the paper's numbers, Markdown, CSV, LaTeX and HTML."""
