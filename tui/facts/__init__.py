"""Facts of sessions as plain values and tables, which the cockpit and the printed pages show. No width, no Textual."""
