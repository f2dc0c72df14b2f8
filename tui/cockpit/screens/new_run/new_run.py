"""New run: a form, and beside it what the run will do before it starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from engine.errors import EngineError
from engine.plan.request import RunPlan
from harness import HarnessError
from sessions.errors import SessionsError
from suites import SuiteError
from suites.own.draft import Draft
from suites.own.folder import kept_own
from suites.own.request import parse_request
from suites.registry import OWN
from tui.actions.own_kernels import assumptions
from tui.actions.run_estimates import estimate
from tui.actions.run_form import (
    ANOTHER,
    BY_KEY,
    MEANINGS,
    CheckedRun,
    FormField,
    check,
    choices,
    command_line,
    field_of,
    shown_fields,
    task_names,
    usual_method,
)
from tui.cockpit.desk.doors import Doors
from tui.cockpit.desk.messages import OpenSession
from tui.cockpit.dialogs.choosing import ChoiceDialog
from tui.cockpit.dialogs.dialogs import ConfirmDialog, LateConfirmDialog
from tui.cockpit.dialogs.layers import ClosesOnce, LayeredScreen
from tui.cockpit.draw.grid import tables_lines
from tui.cockpit.draw.lines import Line, Span, clean, line
from tui.cockpit.screens.new_run.new_run_view import (
    COLUMNS,
    Outlook,
    blockers,
    default_of,
    form_rows,
    preview_tables,
    summary_line,
)
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.key_bar import KeyBar
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.table import LineTable
from tui.facts.node_facts import NodeFacts, node_words

if TYPE_CHECKING:
    from engine.models.spec import ModelSpec
    from sessions.catalog import SessionInfo

PAUSE_S = 0.15
"""Between the last change and its check."""
ASK_S = 5.0
"""Between two questions whether a model answers that did not."""
READING = "reading the kernel file: the kernel is called once, in a sandbox ..."
WIDE = 110
PANES = ("form", "what it will do")
DEPENDENT = {"suite": ("tasks", "file"), "tasks": ("file",), "file": ("suite", "tasks")}
"""Fields that lose their value when the person sets another."""


class FormTable(LineTable):
    """One row a field; below it the error of its value."""

    HELP = """\
What runs, and what it costs, before it starts. `enter` edits a field or opens
its choices; `ctrl+r` starts the run, and asks first if something is missing.

faint        the default of an empty field
red          a wrong value, and below it why
kernel file  your own kernel: `enter` reads it and makes a task of it
right side   what the run will do; at 80 columns pane 2. Estimates come from
             past sessions of the same task, model and method: median,
             lowest and highest
"""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "edit", id="table.open")]


class NewRunScreen(ClosesOnce, LayeredScreen[None]):
    """Checks while one types; starts nothing before `ctrl+r`."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012  # Textual types it as an instance's
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "start", "start the run", id="new_run.start"),
        Binding("tab", "field(1)", "next field", id="new_run.next", show=False, priority=True),
        Binding("shift+tab", "field(-1)", "field before", id="new_run.before", show=False, priority=True),
        Binding("delete,backspace", "clear", "default", id="new_run.clear", key_display="del"),
        Binding("1", "pane(1)", PANES[0], id="new_run.form", show=False),
        Binding("2", "pane(2)", PANES[1], id="new_run.preview", show=False),
        Binding("escape", "back", "back", id="screen.back", key_display="esc"),
    ]

    def __init__(
        self, doors: Doors, *, failed: Callable[[Worker.StateChanged], None], field: str = ""
    ) -> None:
        """`field` is the one to type in at once."""
        super().__init__()
        self._first = field
        self._doors = doors
        self._tell_failure = failed
        self.values: dict[str, str] = {}
        self.outlook = Outlook(self.values)
        self._past: Sequence[SessionInfo] = ()
        self._models: tuple[ModelSpec, ...] = ()
        self._editing: FormField | None = None
        self._before = ""
        self._pause: Timer | None = None
        self._starting = False
        self._reading = ""
        """The text of the field *kernel file* that is being read."""
        self._file_refusal: tuple[str, str] | None = None
        """The last text of the field *kernel file* that made no task, and why."""
        self.table = FormTable(COLUMNS, id="form")
        self.preview = LineView(id="preview")

    def compose(self) -> ComposeResult:
        yield Bar(id="header", classes="header")
        yield Bar(id="tabs")
        with Horizontal(id="panes"):
            yield self.table
            yield self.preview
        yield Bar(id="summary")
        yield Bar(id="about")
        yield Input(id="edit", select_on_focus=False)
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Read the node and the past sessions, and check the defaults."""
        self.table.focus()
        self._draw()
        self._read_node()
        self._read_past()
        self._check()
        self.set_interval(ASK_S, self._ask_again)
        if self._first:
            self.table.select(self._first)
            self._edit(BY_KEY[self._first])

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    # Reading and checking, in threads

    @work(thread=True, exclusive=True, exit_on_error=False, group="node", name="reading this node")
    def _read_node(self) -> None:
        node = self._doors.read_node()
        self.app.call_from_thread(self._show, node=node)

    @work(thread=True, exclusive=True, exit_on_error=False, group="past", name="reading past sessions")
    def _read_past(self) -> None:
        past = self._doors.list_sessions()
        self.app.call_from_thread(self._take_past, past)

    def _take_past(self, past: Sequence[SessionInfo]) -> None:
        self._past = past
        self._estimate()

    def _changed(self) -> None:
        """Check anew, a moment after the last change."""
        self._show(values=dict(self.values), checked=None, estimate=None)
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE_S, self._check)

    def _check(self) -> None:
        self._check_values(dict(self.values))

    @work(thread=True, exclusive=True, exit_on_error=False, group="check", name="checking the run")
    def _check_values(self, values: Mapping[str, str]) -> None:
        doors = self._doors
        checked = check(values, home=doors.home, environ=doors.environ, folder=Path.cwd())
        self.app.call_from_thread(self._take_check, values, checked)

    def _take_check(self, values: Mapping[str, str], checked: CheckedRun) -> None:
        if values != self.values:
            return
        if self._reading and values.get("file") == self._reading:
            checked = CheckedRun(wanted=READING)
        elif self._file_refusal is not None and values.get("file") == self._file_refusal[0]:
            checked = CheckedRun(errors={"file": self._file_refusal[1]})
        usual = checked.plan or self.outlook.usual
        self.outlook = dataclasses.replace(self.outlook, checked=checked, usual=usual)
        self._estimate()
        if checked.plan is not None and checked.models != self._models:
            self._models = checked.models
            self._show(reached=None)
            self._reach(checked.models)

    def _estimate(self) -> None:
        plan = self.outlook.checked.plan if self.outlook.checked is not None else None
        self._show(estimate=estimate(plan, self._past) if plan is not None else None)

    @work(thread=True, exclusive=True, exit_on_error=False, group="reach", name="asking the model's server")
    def _reach(self, models: Sequence[ModelSpec]) -> None:
        reached = {str(spec): self._doors.unreachable(spec, self._doors.environ) for spec in models}
        self.app.call_from_thread(self._show, reached=reached)

    def _ask_again(self) -> None:
        """Ask a server that did not answer, until it does or another model is chosen."""
        if any((self.outlook.reached or {}).values()):
            self._reach(self._models)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            if event.worker.group == "file":
                self._reading = ""
            self._tell_failure(event)

    # Drawing

    def _show(self, **changes: object) -> None:
        self.outlook = dataclasses.replace(self.outlook, **changes)  # type: ignore[arg-type]  # fields of Outlook
        self._draw()

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        width = self.size.width
        title = "Starting the run ..." if self._starting else "New run"
        node = node_words(self.outlook.node) if self.outlook.node is not None else "reading this node ..."
        self.query_one("#header", Bar).show((Span(f"{title}  ", "key"), Span(node, "dim")))
        is_preview = self.has_class("-preview")
        self.query_one("#tabs", Bar).show(
            tuple(
                Span(f"[{number} {name}]", "bold key")
                if (number == 2) is is_preview
                else Span(f" {number} {name} ", "dim")
                for number, name in enumerate(PANES, 1)
            )
        )
        self.table.source = command_line(self.values)
        form_width = self.table.size.width or width
        self.table.set_rows(
            form_rows(self.values, self.outlook.checked, self.outlook.usual, width=form_width)
        )
        room = self.preview.scrollable_content_region.width
        if room > 0:
            self.preview.show(tables_lines(preview_tables(self.outlook), room), copy_text=self.table.source)
        summary = self.query_one("#summary", Bar)
        summary.show(summary_line(self.outlook))
        summary.display = not self.has_class("-wide") or bool(blockers(self.outlook))
        self.query_one("#about", Bar).show(self._about())

    def _about(self) -> Line:
        entry = self._editing or self._field
        if self._editing is not None:
            error = self.outlook.checked.errors.get(entry.key, "") if self.outlook.checked else ""
            words = clean(error) or f"enter: done, esc: undo  {entry.about}"
            return (Span(f" {entry.label}  ", "key"), *line(words, "bad" if error else "dim"))
        value = self.values.get(entry.key) or default_of(entry.key, self.outlook.usual)
        meaning = MEANINGS.get(entry.key, {}).get(value, "")
        return (
            Span(f" {entry.label}  ", "key"),
            *line(f"{value}: {meaning}" if meaning else entry.about, "dim"),
        )

    @property
    def _field(self) -> FormField:
        """The field under the cursor."""
        return BY_KEY[self.table.cursor_key or shown_fields(self.values)[0].key]

    @on(LineTable.Moved)
    def _follow_cursor(self) -> None:
        self.query_one("#about", Bar).show(self._about())

    # Editing

    @on(LineTable.Opened)
    def open_field(self) -> None:
        """Edit the field, or open its choices."""
        if self._field.has_choices:
            self._read_choices(self._field, dict(self.values))
        else:
            self._edit(self._field)

    def _edit(self, entry: FormField) -> None:
        self._editing, self._before = entry, self.values.get(entry.key, "")
        edit = self.query_one(Input)
        self.add_class("-editing")
        edit.value = self._before
        edit.cursor_position = len(edit.value)
        edit.focus()
        self._draw()

    @on(Input.Changed)
    def _type(self, event: Input.Changed) -> None:
        if self._editing is not None:
            self._set(self._editing.key, event.value.strip())

    @on(Input.Submitted)
    def _submit(self) -> None:
        entry = self._editing
        self._end_edit()
        if entry is not None and entry.key == "file" and self.values.get("file"):
            self._reading = self.values["file"]
            self._show(checked=CheckedRun(wanted=READING))
            self._read_file(self._reading)

    def _end_edit(self) -> None:
        self._editing = None
        self.remove_class("-editing")
        self.table.focus()
        self._draw()

    def _set(self, key: str, text: str) -> None:
        if text == self.values.get(key, ""):
            return
        self._set_all({key: text} | dict.fromkeys(DEPENDENT.get(key, ()), ""))

    def _set_all(self, texts: dict[str, str]) -> None:
        """Set fields; the method follows them, unless the person chose another."""
        model = self.outlook.usual.model if self.outlook.usual is not None else ""
        before = usual_method(self.values, model)
        changed = self.values | texts
        after = usual_method(changed, model)
        if before != after and changed.get("method", "") == before:
            changed |= {"method": after} | ({"model": ""} if after else {})
        self.values = {key: text for key, text in changed.items() if text}
        self.app.clear_notifications()  # they are about the values before
        self._changed()

    @work(thread=True, exclusive=True, exit_on_error=False, group="file", name="reading the kernel file")
    def _read_file(self, text: str) -> None:
        try:
            draft = self._doors.draft(parse_request(text))
        except (SuiteError, HarnessError) as error:
            self.app.call_from_thread(self._refuse_file, text, str(error))
        else:
            self.app.call_from_thread(self._offer_task, text, draft)

    def _refuse_file(self, text: str, why: str) -> None:
        self._file_refusal = (text, why)
        if text == self.values.get("file"):
            self._reading = ""
            self._show(checked=CheckedRun(errors={"file": why}))

    def _offer_task(self, text: str, draft: Draft) -> None:
        """Show what is assumed about the file; a yes makes the task and chooses it. What is typed or chosen is done first."""
        if text != self.values.get("file"):
            self._reading = "" if self._reading == text else self._reading
            return
        if self._editing is not None or not self.is_current:
            self.set_timer(PAUSE_S, partial(self._offer_task, text, draft))
            return
        self._reading = ""
        self._check()

        def answered(yes: bool | None) -> None:  # noqa: FBT001  # the answer of a dialog
            if yes:
                try:
                    with kept_own(draft, self._doors.home.suites) as task:
                        self._set_all({"suite": OWN, "tasks": task.id})
                except (SuiteError, OSError) as error:
                    self._refuse_file(text, str(error))

        lines = [f"{name}: {words}" for name, words in assumptions(draft, sends=True)]
        self.app.push_screen(LateConfirmDialog("Make this task?", consequence="\n".join(lines)), answered)

    @work(thread=True, exclusive=True, exit_on_error=False, group="choices", name="reading the choices")
    def _read_choices(self, entry: FormField, values: Mapping[str, str]) -> None:
        past = list(dict.fromkeys(info.settings.model for info in self._past if info.settings.model))
        node = self.outlook.node or NodeFacts()
        try:
            offered = choices(
                entry.key, values, home=self._doors.home, environ=self._doors.environ, node=node, past=past
            )
        except SuiteError as error:
            self.app.call_from_thread(self.notify, clean(str(error)), severity="error", markup=False)
            return
        pairs = [(choice.name, choice.words) for choice in offered]
        self.app.call_from_thread(self._offer, entry, pairs)

    def _offer(self, entry: FormField, pairs: Sequence[tuple[str, str]]) -> None:
        current = self.values.get(entry.key, "")
        marked = set(task_names({"tasks": current})) if entry.several else None

        def answered(names: tuple[str, ...] | None) -> None:
            if names == (ANOTHER,):
                self._edit(entry)
            elif names is not None:
                self._set(entry.key, ",".join(names))

        title = f"{entry.label}: {entry.about}"
        self.app.push_screen(ChoiceDialog(title, pairs, current=current, marked=marked), answered)

    def action_clear(self) -> None:
        self._set(self._field.key, "")

    def action_field(self, steps: int) -> None:
        """Go to the next field; an edit is done with that."""
        if self._editing is not None:
            self._end_edit()
        self.table.action_cursor(steps)

    def action_pane(self, number: int) -> None:
        """Show the form or what the run will do, where there is room for one of them."""
        self.set_class(number == 2, "-preview")
        (self.preview if number == 2 and self.has_class("-narrow") else self.table).focus()
        self.call_after_refresh(self._draw)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("clear", "pane"):
            return self._editing is None
        return super().check_action(action, parameters)

    # Leaving

    def action_back(self) -> None:
        """End the edit, else leave; asks only if something was entered."""
        if self._editing is not None:
            key, before = self._editing.key, self._before
            self._end_edit()
            self._set(key, before)
            return
        if not self.values:
            self.dismiss()
            return

        def answered(leave: bool | None) -> None:  # noqa: FBT001  # the answer of a dialog
            if leave:
                self.dismiss()

        dialog = ConfirmDialog("Leave the form?", consequence="No run starts; the values are lost.")
        self.app.push_screen(dialog, answered)

    def action_start(self) -> None:
        """Start the run if nothing is wrong; ask if something is missing."""
        checked = self.outlook.checked
        if self._starting:
            return
        if checked is None or checked.run is None or checked.plan is None:
            words = "still checking" if checked is None else checked.wanted or "the values in red are wrong"
            self.notify(f"not started: {words}", severity="warning", timeout=4)
            return
        run = checked.run

        def answered(start: bool | None) -> None:  # noqa: FBT001  # the answer of a dialog
            if start:
                self._starting = True
                self._draw()
                self._start(run)

        if missing := blockers(self.outlook):
            self.app.push_screen(
                ConfirmDialog("Start all the same?", consequence="\n".join(missing)), answered
            )
        else:
            answered(start=True)

    @work(thread=True, exit_on_error=False, group="start", name="starting the run")
    def _start(self, run: RunPlan) -> None:
        try:
            session = self._doors.start(run)
        except (EngineError, SuiteError, HarnessError, SessionsError) as error:
            self.app.call_from_thread(self._refused, error)
        else:
            self.app.call_from_thread(self._started, session)

    def _refused(self, error: Exception) -> None:
        self._starting = False
        self._show(checked=CheckedRun(errors={field_of(error): str(error)}))
        self.notify(clean(str(error)), title="not started", severity="error", timeout=20, markup=False)

    def _started(self, session: str) -> None:
        app = self.app
        self.dismiss()
        app.post_message(OpenSession(session))
