"""Core images of a running process, and what is found in them."""
import pathlib
import struct
import subprocess
import tempfile

import values

HERE = pathlib.Path(__file__).resolve().parent
# How many bytes of what stands around a find are shown.
AROUND = 48
# Where a find is that lies in no mapping: the image's notes have what each thread had in the processor's registers.
REGISTERS = "registers"
# search.c takes no longer ones.
LONGEST = 4096


class NoImage(Exception):
    """There is no image of the process; the text says why."""


class Search:
    """Compiles the searcher, and looks for values by name in core images."""

    def __init__(self, folder):
        self.folder = folder
        self.program = folder / "search"
        subprocess.run(["gcc", "-std=gnu11", "-O2", "-Wall", "-o", self.program, HERE / "search.c"], check=True)

    def find(self, image, wanted):
        """Where the image has values.

        wanted: values by name, as bytes. Gives a list of (name, form, address, what stands around).
        """
        needles, meaning = [], []
        for name, data in wanted.items():
            for form, text in values.forms(data):
                for part in dict.fromkeys(values.parts(text[:LONGEST])):
                    needles.append(part.hex())
                    meaning.append((name, form if len(part) == len(text) else f"{form}, {len(part)} of {len(text)}"))
        file = self.folder / "needles"
        file.touch(0o600)
        file.write_text("".join(each + "\n" for each in needles))
        told = subprocess.run([self.program, image.path, file], capture_output=True, text=True)
        file.unlink()
        if told.returncode:
            raise NoImage(told.stderr.strip())
        found = []
        for line in told.stdout.splitlines():
            number, offset = map(int, line.split())
            found.append((*meaning[number], image.region(offset), image.around(offset)))
        return found


class Image:
    """A core image in a file, which goes when the block that it is taken for ends."""

    def __init__(self, pid, folder):
        self.pid, self.folder = pid, folder

    def __enter__(self):
        self.maps = pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines()
        prefix = tempfile.mktemp(prefix="core-", dir=self.folder)
        told = subprocess.run(["gcore", "-a", "-o", prefix, str(self.pid)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        self.path = pathlib.Path(f"{prefix}.{self.pid}")
        if told.returncode or not self.path.exists():
            raise NoImage((told.stderr or told.stdout).strip()[-300:])
        with open(self.path, "rb") as file:
            head = file.read(64)
            if head[:6] != b"\x7fELF\x02\x01" or head[16:18] != b"\4\0":
                raise NoImage("what gcore wrote is no core image of 64 bits")
            start, = struct.unpack_from("<Q", head, 32)
            size, count = struct.unpack_from("<HH", head, 54)
            file.seek(start)
            table = file.read(size * count)
        rows = [struct.unpack_from("<IIQQQQQQ", table, at) for at in range(0, len(table), size)]
        # Where it lies in the file, in memory, and how long it is.
        self.segments = [(row[2], row[3], row[5]) for row in rows if row[0] == 1]
        self.bytes = sum(length for _, _, length in self.segments)
        return self

    def __exit__(self, *_):
        self.path.unlink(missing_ok=True)

    def region(self, offset):
        """The mapping that a place of the file was in."""
        for start, address, length in self.segments:
            if start <= offset < start + length:
                address += offset - start
                for line in self.maps:
                    words = line.split(None, 5)
                    low, high = (int(end, 16) for end in words[0].split("-"))
                    if low <= address < high:
                        return f"{words[5] if len(words) > 5 else 'anonymous'}+{address - low:x} ({words[1]})"
                return f"{address:x}"
        return REGISTERS

    def around(self, offset):
        with open(self.path, "rb") as file:
            file.seek(max(0, offset - AROUND))
            return "".join(chr(each) if 0x20 <= each < 0x7F else "." for each in file.read(2 * AROUND + 64))
