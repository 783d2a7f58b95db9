"""Sets and gets registers in a directory at random, and logs what it saw and when.

Arguments: directory, number of this worker (also its seed), seconds, file for the log, and perhaps "mmap".
A line of the log: register, w or r, value, begin and end (nanoseconds of CLOCK_MONOTONIC), ok or failed.
Every value that is set is set once. 0 is what is there before anything was set.
"""

import errno
import mmap
import os
import random
import struct
import sys
import time

base, number, seconds, log = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
maps = "mmap" in sys.argv[5:]
rng = random.Random(number)


def set_data(path, value):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(fd, struct.pack("<q", value), 0)
        # What is only answered may be lost with the process of a mount.
        os.fsync(fd)
    finally:
        os.close(fd)


def get_data(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        if maps and rng.random() < 0.3:
            with mmap.mmap(fd, 8, prot=mmap.PROT_READ) as mapped:
                return struct.unpack("<q", mapped[:8])[0]
        return struct.unpack("<q", os.pread(fd, 8, 0))[0]
    finally:
        os.close(fd)


def set_name(path, value):
    new = f"{path}.{number}"
    with open(new, "w") as file:
        file.write(str(value))
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, path)


def get_name(path):
    with open(path) as file:
        return int(file.read())


def set_mark(path, value):
    os.setxattr(path, "user.mark", str(value).encode())


def get_mark(path):
    try:
        return int(os.getxattr(path, "user.mark"))
    except OSError as error:
        if error.errno == errno.ENODATA:
            return 0
        raise


KINDS = {
    "data": (set_data, get_data),
    "name": (set_name, get_name),
    "mark": (set_mark, get_mark),
    "time": (lambda p, v: os.utime(p, ns=(v, v)), lambda p: os.stat(p).st_mtime_ns),
    "size": (os.truncate, lambda p: os.stat(p).st_size),
}

until = time.monotonic() + seconds
count = 0
with open(log, "w") as out:
    while time.monotonic() < until:
        kind, index = rng.choice(list(KINDS)), rng.randrange(2)
        put, get = KINDS[kind]
        path = f"{base}/{kind}{index}"
        count += 1
        sets, value, outcome = rng.random() < 0.4, count * 64 + number, "ok"
        begin = time.monotonic_ns()
        try:
            if sets:
                put(path, value)
            else:
                value = get(path)
        except OSError as error:
            outcome = f"failed {error}"
        end = time.monotonic_ns()
        how = "w" if sets else "r"
        out.write(f"{kind}{index} {how} {value} {begin} {end} {outcome}\n")
        if rng.random() < 0.2:
            # Long enough for something to be granted.
            time.sleep(rng.random() * 0.02)
