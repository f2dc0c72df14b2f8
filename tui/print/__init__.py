"""Pages that commands print: text, Markdown, HTML and CSV of the facts."""
