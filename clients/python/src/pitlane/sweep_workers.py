"""Processes that do the runs of a search, each one run at a time.

```text
search ─► WorkerPool ─► pipe ─► worker process: function(task) ─► pipe ─► answer
                                   └─ it ends: its task has failed, and another one replaces it
```

Processes are forked: a worker then has the class of the strategy, also one of a notebook, and the
rows of the data without a copy. With "spawn" each is a new interpreter, which imports the class and
reads the data again.
"""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Generic, Iterator, Literal, Sequence, Tuple, TypeVar, Union

StartMethod = Literal["fork", "spawn"]
Task = TypeVar("Task")
Answer = TypeVar("Answer")


class WorkerLost(Exception):
    """A worker process has ended; the text says how."""


class WorkerPool(Generic[Task, Answer]):
    """Some processes that call a function with tasks. Use it in a `with` block."""

    def __init__(self, jobs: int, method: StartMethod, make: Callable[[], Callable[[Task], Answer]]) -> None:
        """`make` is called once in each process and returns the function."""
        self._jobs, self._method, self._make = jobs, method, make
        self._workers: list[_Worker] = []

    def __enter__(self) -> WorkerPool[Task, Answer]:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()

    def run(self, tasks: Sequence[Task]) -> Iterator[Tuple[int, Union[Answer, WorkerLost]]]:
        """Yields the place of each task and its answer, in the order in which they end."""
        while len(self._workers) < min(self._jobs, len(tasks)):
            self._start()
        places = iter(range(len(tasks)))
        busy: dict[Any, _Worker] = {}
        for worker, place in zip(self._workers, places):
            busy[worker.begin(place, tasks[place])] = worker
        while busy:
            for ready in wait(list(busy)):
                worker = busy.pop(ready)
                answer = worker.answer()
                yield worker.place, answer
                is_lost = isinstance(answer, WorkerLost)
                if is_lost:
                    self._workers.remove(worker)
                    worker.kill()
                following = next(places, None)
                if following is not None:
                    worker = self._start() if is_lost else worker
                    busy[worker.begin(following, tasks[following])] = worker

    def _start(self) -> _Worker:
        worker = _Worker(self._method, self._make, [worker.connection for worker in self._workers])
        self._workers.append(worker)
        return worker


class _Worker:
    def __init__(self, method: StartMethod, make: Callable[[], Callable[[Any], Any]], others: list[Connection]) -> None:
        context: Any = multiprocessing.get_context(method)
        ends: Tuple[Connection, Connection] = context.Pipe()
        self.connection, child = ends
        self.place = 0
        self._is_ready = False
        inherited = [*others, self.connection] if method == "fork" else []
        self._process = context.Process(target=_serve, args=(child, inherited, make), daemon=True)
        with warnings.catch_warnings():
            # Libraries such as pyarrow have threads, which a forked process does not have. It does
            # not need them: it runs the engine and the strategy.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        child.close()

    def begin(self, place: int, task: Any) -> Connection:
        self.place = place
        try:
            self.connection.send(task)
        except OSError:
            # The process has ended, and `answer` says so.
            pass
        return self.connection

    def answer(self) -> Any:
        """Waits for the answer. Raises the exception that has kept the process from starting."""
        try:
            if not self._is_ready:
                error = self.connection.recv()
                if error is not None:
                    raise error
                self._is_ready = True
            return self.connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            lost = WorkerLost(f"the process of the run ended with the status {self._process.exitcode}")
            if self._is_ready:
                return lost
            raise lost from None

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


def _serve(connection: Connection, inherited: list[Connection], make: Callable[[], Callable[[Any], Any]]) -> None:
    """Does tasks until the parent has closed the connection or has ended."""
    # While a copy of the parent's end is open, `recv` does not notice that the parent has ended.
    for end in inherited:
        end.close()
    # Ctrl-C reaches all processes of a terminal; the parent ends the search.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        function = make()
    except Exception as error:
        connection.send(RuntimeError(f"{type(error).__name__}: {error}"))
        return
    connection.send(None)
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(function(task))
