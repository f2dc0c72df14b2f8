"""Facts as plain values, tables and sentences. The cockpit and the printed pages render them; nothing here knows a width."""
