"""The field's metrics, each defined once, over the judged attempts of sessions.

attempt_row.py   `AttemptRow`, `attempt_rows`: the rows of a session's state.
row_cache.py     the rows of a stored session, kept in a file.
attempts.py      the rows as one DataFrame, for tables.
selection.py     which rows a table has: reasons to leave out, groups.
task_kinds.py    category and difficulty of tasks, and the sizes of their suites.
formulas.py      shares, pass@k, means, fast_p, expected best.
attribution.py   deviance that category and method explain.
equal_budget.py  two sides, task by task, at equal budget.
comparison.py    whether a difference of two sides is proven.
training_rows.py  pairs and transitions of a session as rows of data.
intervals.py     Wilson, bootstrap over tasks.
"""
