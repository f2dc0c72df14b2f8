"""Exams in git: a branch an instance, beside its attempts, since commits that others are built on never change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .attempt_files import Piece, exam_files, exam_message
from .state import AttemptState, InstanceState, SessionState
from .store import HEADS, ExamCommit, Store, exam_branch


def examined(instance: InstanceState) -> list[AttemptState]:
    """The instance's examined attempts, in the order of their exams."""
    return sorted((each for each in instance.attempts if each.exam), key=lambda each: each.examined_seq)


def exam_commits(
    instance: InstanceState, reasoning: Callable[[AttemptState], Sequence[Piece]]
) -> list[ExamCommit]:
    """What the instance's branch of exams should hold; exams of attempts that git lacks are left out."""
    return [
        ExamCommit(
            each.commit, exam_files(instance, each, reasoning(each)), exam_message(each), each.examined_wall
        )
        for each in examined(instance)
        if each.commit is not None
    ]


def exams_behind(store: Store, session: str, state: SessionState) -> list[str]:
    """Keys of the instances whose latest exam git lacks."""
    behind = []
    for key, instance in state.instances.items():
        known = examined(instance)
        if known:
            tip = store.repository.read_ref(HEADS + exam_branch(session, key))
            message = store.repository.read_commit(tip).message if tip else ""
            if message != exam_message(known[-1]):
                behind.append(key)
    return behind
