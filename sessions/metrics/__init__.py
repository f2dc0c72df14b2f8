"""The field's metrics: one row of plain data for each judged attempt, and each metric defined once over rows."""
