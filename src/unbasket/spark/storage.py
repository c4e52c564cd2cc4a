"""A folder of Arrow files, on a local disk or, by `pyarrow.fs`, on HDFS or in an object store."""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from unbasket.files import fsync


class Folder:
    """The files of a checkpoint's state, by name. A file is written once, and never changed."""

    def __init__(self, checkpoint: str) -> None:
        """Find the folder of a checkpoint, which is given as a path or as one of Spark's addresses."""
        self.checkpoint = checkpoint
        is_path = "://" not in checkpoint and not checkpoint.startswith("file:")
        uri = os.path.abspath(checkpoint) if is_path else checkpoint.replace("s3a://", "s3://", 1)
        self._files, root = fs.FileSystem.from_uri(uri)
        self._root, self.local = f"{root.rstrip('/')}/histories", None
        if isinstance(self._files, fs.LocalFileSystem):
            self._files, self.local = fs.LocalFileSystem(use_mmap=True), Path(self._root)

    def names(self) -> list[str]:
        """List the files; none if there is no folder."""
        return [info.base_name for info in self._files.get_file_info(fs.FileSelector(self._root, allow_not_found=True))]

    def make(self) -> None:
        """Create the folder, unless it exists."""
        self._files.create_dir(self._root)

    def remove(self, name: str) -> None:
        """Remove a file; if it is missing, another process has removed it."""
        with suppress(FileNotFoundError):
            self._files.delete_file(f"{self._root}/{name}")

    def read(self, name: str) -> pa.Buffer:
        """Read a file: memory-mapped from a local disk, where it stays readable after its removal."""
        with self._files.open_input_file(f"{self._root}/{name}") as file:
            return file.read_buffer()

    def read_table(self, name: str) -> pa.Table:
        """Read an Arrow file."""
        return pa.ipc.open_file(self.read(name)).read_all()

    def write_table(self, name: str, table: pa.Table) -> int:
        """Write an Arrow file that a memory map can search: one batch, uncompressed. Returns its size in bytes."""
        with self._files.open_output_stream(f"{self._root}/{name}") as file:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table.combine_chunks())
            size: int = file.tell()
        if self.local:
            fsync(self.local / name)
        return size

    def create(self, name: str, content: bytes, partial: str) -> bool:
        """Create a file in one step; return False if it exists.

        On a local disk, one of several processes succeeds. Elsewhere, two that create a file in the same moment may
        both do, and the later content stays.
        """
        partial = f"{partial}-{uuid4().hex}"
        with self._files.open_output_stream(f"{self._root}/{partial}") as file:
            file.write(content)
        try:
            if self.local:
                fsync(self.local / partial)
                os.link(self.local / partial, self.local / name)
                fsync(self.local)
            elif name in self.names():
                return False
            else:
                self._files.move(f"{self._root}/{partial}", f"{self._root}/{name}")
        except (FileExistsError, FileNotFoundError):  # another driver was faster, and may have removed the partial file
            return False
        finally:
            self.remove(partial)
        return True
