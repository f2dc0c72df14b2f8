"""The field's metrics, each defined once over rows: one row of plain data for each judged attempt.

attempt_row.py   `AttemptRow`, `attempt_rows`: the rows of a session's state
selection.py     which rows a table has: reasons to leave out, best rows, groups
task_kinds.py    category and difficulty of tasks
accuracy.py      call and execution accuracy, pass@k
speedup.py       means, fast_p, speedup@k, utilisation
cost.py          what a solved task costs
bias.py          found against confirmed, rescued against started correct, rounds
attribution.py   deviance that category and method explain
maintainability.py  maintainability of a candidate
equal_budget.py  two sides, task by task, at equal budget
comparison.py    whether a difference of two sides is proven
training_rows.py  pairs and transitions of a session as rows of data
intervals.py     Wilson, bootstrap over tasks
"""
