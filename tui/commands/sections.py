"""Sections of options in the help of commands that have many."""

from __future__ import annotations

import click

SECTIONS = {
    "What runs": "suite task method agent agent_command instances iterations by start review cases exam",
    "Models and prompts": "model prompt_style corpus show_reference without tune workers descendants",
    "Judge and devices": "devices device targets against cache spread sustained seed python",
    "Budgets and stops": "budget_usd budget_tokens budget_device_s budget_wall_s "
    "stop_at_speedup stop_without_gain past_roof",
    "Own kernel file": "shapes reference tolerance send_only calls",
}
"""Parameters of each section."""
OTHER = "Start and output"
"""Section of all other options."""


class Sectioned(click.Command):
    """Command with its options in sections, in each in the order of the command."""

    def records(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the options of each section with their help."""
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in (*SECTIONS, OTHER)}
        titles = {name: title for title, names in SECTIONS.items() for name in names.split()}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
                sections[titles.get(parameter.name or "", OTHER)].append(record)
        return sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of options for each section that has some."""
        for title, records in self.records(ctx).items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
