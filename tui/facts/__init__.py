"""Facts as plain values, tables and sentences, which the cockpit and the printed pages show. No width, no Textual."""
