"""Execution of a notebook to its last cell, whatever its cells do to Python."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from posenc.grading.assignments import SETUP

# Names of the errors that stand in the outputs of a cell that did not end by itself.
STOPPED = {"CellStopped", "CellTimeoutError"}


class ToTheEnd(NotebookClient):
    """Goes on in a new kernel where a cell ends or blocks the old one."""

    async def async_execute_cell(self, cell: Any, cell_index: int, **options: Any) -> Any:
        """Execute one cell, and see to it that there is a kernel for the next."""
        try:
            return await self._execute(cell, cell_index, **options)
        except DeadKernelError:
            what = "ended Python: it may have run out of memory or crashed in compiled code"
        except CellTimeoutError:
            what = f"ran longer than {self.timeout} seconds and could not be interrupted"
        message = f"This cell {what}. The cells after it ran in a new kernel."
        cell.outputs = [
            nbformat.v4.new_output(
                "error", ename="CellStopped", evalue=message, traceback=[f"CellStopped: {message}"]
            )
        ]
        await self._start_again(cell_index)
        return cell

    async def _execute(self, cell: Any, cell_index: int, **options: Any) -> Any:
        try:
            return await super().async_execute_cell(cell, cell_index, **options)
        except DeadKernelError:
            # nbclient takes any end of the wait for the end of the kernel.
            if asyncio.current_task().cancelling():
                raise asyncio.CancelledError from None
            raise

    async def _start_again(self, end: int) -> None:
        """Start a new kernel and bring it to where the old one was before cell ``end``."""
        await self._new_kernel()
        cells = self.nb.cells
        for index in range(end):
            if not _defines(cells[index]):
                continue
            executed = cells[index]
            try:
                await self._execute(copy.deepcopy(executed), index, store_history=False)
            except (DeadKernelError, CellTimeoutError):
                await self._new_kernel()
                break
            finally:
                cells[index] = executed

    async def _new_kernel(self) -> None:
        await self._async_cleanup_kernel()
        self.create_kernel_manager()
        await self.async_start_new_kernel()
        await self.async_start_new_kernel_client()


def _defines(cell: Any) -> bool:
    """Return whether a cell that was executed may have left something behind for later ones."""
    if cell.cell_type != "code":
        return False
    if any(output.get("ename") in STOPPED for output in cell.outputs):
        return False
    part = cell.metadata.get("nbgrader", {})
    locked = not part.get("solution") and (part.get("grade") or part.get("locked"))
    return not locked or part.get("grade_id") == SETUP
