"""What the suite `bounds` does inside a mount. Every command ends with status 1 and a word if anything is wrong."""
import multiprocessing, os, sys, time


def make(args):
    directory, first, last = args
    handle = os.open(directory, os.O_RDONLY)
    for number in range(first, last):
        os.mknod(f"file.{number:07}", 0o644, dir_fd=handle)


def create(directory, count, workers=4):
    """Makes `count` entries."""
    step = (count + workers - 1) // workers
    parts = [(directory, first, min(first + step, count)) for first in range(0, count, step)]
    with multiprocessing.Pool(workers) as pool:
        pool.map(make, parts)


def churn(directory, stop):
    handle = os.open(directory, os.O_RDONLY)
    round = 0
    while not stop.is_set():
        for number in range(50):
            os.mknod(f"churn.{round % 7}.{number}", 0o644, dir_fd=handle)
        for number in range(50):
            os.unlink(f"churn.{round % 7}.{number}", dir_fd=handle)
        round += 1


def listing(directory, count):
    """Lists while other entries come and go: what stays is seen exactly once."""
    stop = multiprocessing.Event()
    other = multiprocessing.Process(target=churn, args=(directory, stop))
    other.start()
    start, seen = time.time(), bytearray(count)
    for entry in os.scandir(directory):
        if entry.name.startswith("file."):
            seen[int(entry.name[5:])] += 1
    stop.set()
    other.join()
    wrong = count - sum(1 for times in seen if times == 1)
    print(f"listed {count} in {time.time() - start:.1f} s beside another's changes, {wrong} not exactly once")
    return wrong == 0 and other.exitcode == 0


def opens(directory, count):
    """`count` files open at once; half of them are unlinked meanwhile."""
    os.mkdir(directory)
    content = lambda number: number.to_bytes(8, "little") * 512
    files = []
    for number in range(count):
        files.append(os.open(f"{directory}/{number}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))
        os.pwrite(files[-1], content(number), 0)
    report("all open")
    for number in range(0, count, 2):
        os.unlink(f"{directory}/{number}")
    good = len(os.listdir(directory)) == count - len(range(0, count, 2))
    for number, file in enumerate(files):
        os.pwrite(file, content(number + 1), 4096)
        good &= os.pread(file, 9000, 0) == content(number) + content(number + 1)
        good &= os.fstat(file).st_nlink == number % 2
    report("all read")
    for file in files:
        os.close(file)
    good &= len(os.listdir(directory)) == count // 2
    return good


def report(when):
    """Tells the script beside us to take figures, and waits until it has."""
    print(when, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    command, directory, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    sys.exit({"create": create, "listing": listing, "opens": opens}[command](directory, count) is False)
