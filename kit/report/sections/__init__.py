"""One module a section of the report: a part of the verdict in, a frozen view of ready Markdown strings out."""
