from tests.support.judging import pool

__all__ = ["pool"]
