#!/usr/bin/env python3
"""Checks the public log of a Roundhouse instance without any of its code: Python's standard library only.

    python3 verify_record.py URL [--kept FILE [--kept-at TIME] [--since-kept]] [--table HOUSE/GAME/MARKET] [--keep FILE]

It checks the signature of the newest checkpoint, the whole tree from its entries, the inclusion of every entry in the
tiles, and that a kept checkpoint is the beginning of the log. Of a table it downloads rounds, forecasts and scores,
recomputes their chains, compares them with every statement of the log, derives each score from the rounds after its
forecast, and recomputes the accuracy rows that the log states. What is newer than the oldest open forecast is not public
yet and not compared: at most 400 on-time rounds, which the longest window has. A checkpoint was kept at TIME, else when
its file was written or, if that is earlier, when a witness cosigned it: a copy of a file may have a new time.

The log has the statements about all tables. --since-kept reads only what was not compared when the checkpoint was kept:
of older entries it reads hashes, which prove that the kept checkpoint is the beginning of the log. An entry before it that
contradicts a newer one is found only by a check of the whole log. --keep stores the checkpoint that was checked, if all is
right, for the next check.

It exits with
    0  if everything that is public was checked and is right,
    1  at the first thing that is wrong (WRONG),
    2  if the command cannot be used: an option, the file of the kept checkpoint, the name of the table,
    3  if it could not check now: the server is busy, restarts or does not respond (UNAVAILABLE), or a process is behind
       another one (BEHIND): its log is shorter than a checkpoint that was kept within the last hour, or it lacks a tile
       of entries that no checkpoint covers that was kept for longer. Run it again,
    4  if another log was declared since the checkpoint was kept, and everything else is right (DECLARED),
    5  if a limit of this script is reached, so that the rest is not checked (LIMIT). The text names the limit to raise.
"""
import argparse, base64, csv, datetime, hashlib, http.client, itertools, json, math, os, re, sys, tempfile, time
import urllib.error, urllib.request

sha256 = lambda *parts: hashlib.sha256(b"".join(parts)).digest()
leaf_hash = lambda entry: sha256(b"\0", entry)


def show(text, file=sys.stdout):
    """Prints a line. Characters of the server that a terminal could take as a command are shown as escapes."""
    print("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text), file=file)


def stop(code, text):
    show(text, sys.stderr)
    sys.exit(code)


def fail(text):
    stop(1, f"WRONG: {text}")


def report_behind(text, alternative=""):
    stop(3, f"BEHIND: {text}: this process serves an older log than another one{alternative}; try again")


def report_limit(name, expected):
    stop(5, f"LIMIT: {expected}, found more: nothing was found wrong, and the rest is not checked; set {name} in this script higher")


MOST_BYTES = 32 << 20  # of a response: 256 entries of 64 KiB each are 16 MiB
MOST_PAGES = 1_000_000  # of an export: 500 million sets of forecasts or scores; one per second for ten years is 316 million
BUSY = 429, 502, 503, 504


def fetch(url):
    """The bytes of a response and the path of the next page; None if there is no such page. A busy server is asked again."""
    problem = ""
    for seconds in (1, 2, 4, 8, None):
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                data, length = response.read(MOST_BYTES + 1), response.headers["Content-Length"]
                if len(data) > MOST_BYTES:
                    report_limit("MOST_BYTES", f"expected at most {MOST_BYTES} bytes from {url}")
                if not length or len(data) == int(length):
                    following = re.match(r'<(.*)>; rel="next"', response.headers["Link"] or "")
                    return data, following and following[1]
                problem = f"{len(data)} of {length} bytes"
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            problem = f"the status {error.code}"
            if error.code not in BUSY:
                break
            if seconds and (error.headers["Retry-After"] or "").isdecimal():
                seconds = min(60, max(seconds, int(error.headers["Retry-After"])))
        except (OSError, http.client.HTTPException) as error:
            problem = str(getattr(error, "reason", error)) or type(error).__name__
        if seconds:
            time.sleep(seconds)
    stop(3, f"UNAVAILABLE: expected a response from {url}, found {problem}; try again later")


# Ed25519 (RFC 8032), verification only.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    e, f = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    g, h = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point, scalar = add(point, point), scalar >> 1
    return result


def decompress(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = decompress((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(key, message, signature):
    point, r = decompress(key), decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if point is None or r is None or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    (x1, y1, z1, _), (x2, y2, z2, _) = multiply(s, BASE), add(r, multiply(h, point))
    return (x1 * z2 - x2 * z1) % P == 0 and (y1 * z2 - y2 * z1) % P == 0


def split_note(note):
    """Origin, size and root of a note, its signed text, and its signatures as pairs of a name and bytes."""
    text, separator, lines = note.rpartition("\n\n")
    signatures = [line.split(" ") for line in lines.splitlines()]
    origin, size, root = (text.split("\n") + ["", "", ""])[:3]
    root = base64.b64decode(root)
    if not separator or not origin or len(root) != 32 or any(len(signature) != 3 for signature in signatures):
        raise ValueError("a checkpoint has an origin, a size, a root and signatures")
    return (origin, int(size), root), text + "\n", [(name, base64.b64decode(data)) for _, name, data in signatures]


def is_signed_by(note, name, typed_key):
    key_id = sha256(name.encode() + b"\n" + typed_key)[:4]
    _, text, signatures = split_note(note)
    own = [data[4:] for signer, data in signatures if signer == name and data[:4] == key_id]
    return any(is_signed(typed_key[1:], text.encode(), signature) for signature in own)


def check_signature(note, name, typed_key):
    """Of the log with this name, or of an earlier one with the same key, whose beginning is in the name of each log."""
    origin = split_note(note)[0][0]
    if (origin == name or f"/log/{typed_key[1:].hex()[:8]}" in origin) and not is_signed_by(note, origin, typed_key):
        fail("expected a checkpoint that the log's key signed")


def parse_key(verifier_key):
    """The name of a log, and its key after a byte for the type."""
    name, _, key = verifier_key.strip().split("+", 2)
    return name, base64.b64decode(key)


LONGEST_LAG_SECONDS = 3600  # a process that reads from a replica may be behind; after longer the log was shortened


class Kept:
    """A checkpoint that the user kept."""

    def __init__(self, path, kept_at):
        with open(path, encoding="utf-8") as file:
            self.note = file.read(MOST_BYTES)
        (self.origin, self.size, self.root), _, signatures = split_note(self.note)
        # tlog-cosignature: four bytes of the key's id, eight of the time, 64 of the signature, which is not checked
        times = [int.from_bytes(data[4:12], "big") for _, data in signatures if len(data) == 76]
        written_at = os.path.getmtime(path)
        self.age = time.time() - (kept_at or min(written_at, max(times, default=written_at)))
        self.is_old = self.age > LONGEST_LAG_SECONDS

    def reject(self, expected, found, consequence):
        """Wrong if the checkpoint is old; else the process may be behind."""
        if self.is_old:
            fail(f"expected {expected}, kept {self.age / 60:.0f} minutes ago, found {found}: {consequence}")
        report_behind(f"expected {expected}, found {found}")


def read_checkpoint(url, kept):
    """The key and the newest checkpoint. What is older than the kept one is read again: another process may respond."""
    for seconds in (1, 2, 4, None):
        key, note = fetch(f"{url}/log/key"), fetch(f"{url}/log/checkpoint")
        if key and note:
            (name, typed_key), note = parse_key(key[0].decode()), note[0].decode()
            origin, size, root = split_note(note)[0]
            is_new = origin == name and not (kept and kept.origin == origin and kept.size > size)
            if kept:
                check_signature(kept.note, name, typed_key)
            if origin == name:
                check_signature(note, name, typed_key)
            if is_new:
                return typed_key, note, (origin, size, root)
        if seconds:
            time.sleep(seconds)
    if not key or not note:
        if kept and kept.is_old:
            kept.reject(f"a log of at least {kept.size} entries", "none", "it was removed")
        stop(3, f"UNAVAILABLE: expected a key and a checkpoint at {url}/log/, found none: none is signed yet, or it has no log")
    if origin != name:
        report_behind(f"expected a checkpoint of {name}, found one of {origin}")
    kept.reject(f"a log of at least {kept.size} entries", size, "it was shortened")


def keep_checkpoint(path, note, read_at):
    """Replaces the file of a checkpoint; its time is that of the checkpoint."""
    try:
        with open(f"{path}.next", "w", encoding="utf-8", newline="") as file:
            file.write(note)
        os.utime(f"{path}.next", (read_at, read_at))
        os.replace(f"{path}.next", path)
    except OSError as error:
        stop(2, f"expected a file that can be written as {path}, found {error}: everything was right, and no checkpoint is kept")


def parse_time(text):
    try:
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a time such as 2026-11-28T14:00:00Z, found {text}")


class Tree:
    """The tree of RFC 6962 §2.1 over leaves that are added in order: the roots of its whole subtrees."""

    def __init__(self):
        self.size, self.parts = 0, []

    def add(self, node, count=1):
        """Adds a leaf, or the root over `count` leaves, a power of two that divides the size."""
        self.size += count
        size = self.size // count
        while size % 2 == 0:  # it fills a subtree: the last two parts have the same size
            node, size = sha256(b"\1", self.parts.pop(), node), size // 2
        self.parts.append(node)

    def root(self):
        if not self.parts:
            return sha256()
        node = self.parts[-1]
        for part in reversed(self.parts[:-1]):
            node = sha256(b"\1", part, node)
        return node


def tile_path(n, width):
    text = f"{n % 1000:03}"
    while n := n // 1000:
        text = f"x{n % 1000:03}/{text}"
    return text if width == 256 else f"{text}.p/{width}"


def read_tile(url, level, n, size, kept):
    """A tile of a log with this size. After the longest lag every process has the entries of the kept checkpoint."""
    count = lambda size: (size >> 8 * (level if level != "entries" else 0)) - 256 * n

    def read(size):
        path = f"tile/{level}/{tile_path(n, min(256, count(size)))}"
        return path, fetch(f"{url}/log/{path}")

    path, tile = read(size)
    if tile is not None:
        return tile[0]
    if kept and count(kept.size) > 0 and kept.is_old:
        path_then, tile_then = read(kept.size)  # a process that is behind has fewer entries in its last tile
        if tile_then is None:
            kept.reject(f"{path_then}, which the checkpoint covers", "nothing", "entries are withheld")
    report_behind(f"expected {path}, which the checkpoint covers, found nothing", ", or its entries are withheld")


def split_bundle(bundle):
    """The entries of a bundle, each after its length in two bytes."""
    at = 0
    while at < len(bundle):
        end = at + 2 + int.from_bytes(bundle[at : at + 2], "big")
        yield bundle[at + 2 : end]
        at = end


def find_start(url, size, kept, table):
    """
    The bundle that a check since the kept checkpoint begins with. The check of that time compared everything but the last
    400 on-time rounds, which were not public: read are all statements after one that it compared, and an accuracy statement.
    """
    newest, is_compared, has_accuracy = None, False, False
    for n in range((kept.size - 1) // 256 if table else -1, -1, -1):
        bundle = read_tile(url, "entries", n, size, kept)
        for entry in reversed([*itertools.islice(split_bundle(bundle), kept.size - 256 * n)]):
            statement = json.loads(entry)
            if statement.get("table") != table:
                continue
            if statement["kind"] == "accuracy":
                has_accuracy = has_accuracy or is_compared
            else:
                newest = newest or statement
                is_compared = is_compared or is_far_before(statement, newest)
                if is_compared and (has_accuracy or statement["score_hash"] == FIRST_HASH):
                    return n
    return 0 if table else kept.size // 256


def is_far_before(statement, newest):
    """Whether exports that end at the oldest open forecast reach a statement, whatever the newest one states."""
    return int(statement["on_time_rounds"]) <= int(newest["on_time_rounds"]) - LONGEST_WINDOW


def skip_entries(url, tree, to, size, kept):
    """Adds the hashes of the entries up to `to`, from the largest tiles that have them."""
    while tree.size < to:
        level = max(level for level in range(6) if tree.size % 256**level == 0 and tree.size + 256**level <= to)
        n, first = divmod(tree.size >> 8 * level, 256)
        hashes = read_tile(url, level, n, size, kept)
        for place in range(first, min(256, (to >> 8 * level) - 256 * n)):
            tree.add(hashes[32 * place : 32 * place + 32], 256**level)


def read_log(url, checkpoint, kept, log, start=0):
    """Checks the tree: the first entry, hashes up to the bundle `start`, and each entry from there on. `log` keeps the entries."""
    origin, size, root = checkpoint
    kept = kept if kept and kept.origin == origin else None
    tree = Tree()

    def compare_kept():
        if kept and tree.size == kept.size and tree.root() != kept.root:
            fail("expected the log to grow from the kept checkpoint: it was changed")

    if start:
        entry = next(split_bundle(read_tile(url, "entries", 0, 1, kept)), b"")
        tree.add(leaf_hash(entry))
        log.keep(entry, 0)
        skip_entries(url, tree, 256 * start, size, kept)
        compare_kept()
    for n in range(start, math.ceil(size / 256)):
        bundle, hashes = (read_tile(url, level, n, size, kept) for level in ("entries", 0))
        first = tree.size
        for entry in split_bundle(bundle):
            leaf, place = leaf_hash(entry), 32 * (tree.size - first)
            if leaf != hashes[place : place + 32]:
                fail("expected the tiles to hold the hashes of the entries")
            tree.add(leaf)
            log.keep(entry, tree.size - 1)
            compare_kept()
        if len(hashes) != 32 * (tree.size - first):
            fail("expected the tiles to hold the hashes of the entries")
    if tree.size != size or tree.root() != root:
        fail(f"expected {size} entries that lead to the signed root, found {tree.size}")


def number_of_log(origin):
    """Logs that are declared on one instance have rising numbers, the first one none."""
    found = re.search(r"/log/[0-9a-f]{8}/(\d{1,9})$", origin)
    return int(found[1]) if found else 1


def describe_declaration(entry, origin, typed_key):
    """What the first entry states about the log before; None for the first log. Its checkpoint is checked if its key is known."""
    statement = json.loads(entry)
    if statement["kind"] != "log" or statement["origin"] != origin:
        fail(f"expected a first entry that names the log {origin}, found {entry!r}")
    reason = json.dumps(statement["reason"])
    if not statement["previous"]:
        return (None, f"another log was declared: {reason}; it names no previous log") if statement["reason"] else None
    previous = split_note(statement["previous"])[0]
    check_signature(statement["previous"], origin, typed_key)
    return previous, f"another log was declared: {reason}; it names the previous log {previous[0]} at {previous[1]} entries"


def compare_declared(kept, origin, declaration):
    """A kept checkpoint of another log than the newest one: what its declaration states about it."""
    previous, text = declaration or (None, "")
    if number_of_log(kept.origin) >= number_of_log(origin) or not text:
        kept.reject(f"the log {kept.origin} or a declaration of a later one", origin, "it was replaced")
    if previous is None or previous[0] != kept.origin:
        return f"{text}, not the log {kept.origin} of the kept checkpoint: whether it is complete cannot be checked"
    if previous[1] < kept.size:
        fail(f"expected a previous log of at least {kept.size} entries, as kept, found {previous[1]}: it was shortened; {text}")
    if previous[1] > kept.size:
        return f"{text}, {previous[1] - kept.size} more than the kept checkpoint: whether they extend it is not public any more"
    if previous[2] != kept.root:
        fail(f"expected the previous log to have the root of the kept checkpoint, found another root: {text}")
    return f"{text}, which is the kept checkpoint"


KINDS = "rounds", "forecasts", "scores"
FIELDS = {
    "rounds": "absent_at after_gap color hundredths late occurred_at received_at requested_at round_id seq source",
    "forecasts": "absent_at base_ppm cutoff_round_id feature forecast_id history_hash horizon issued_at model p_ppm pause_ms seq table target_round_id",
    "scores": "forecast_id outcome reason rev scored_at settled_seq status target_requested_at",
}
FIRST_HASH = "0" * 64
REMOVED = "rows were removed, or one process is behind another one; try again"
MANY_ENTRIES = 1_000_000  # 8,000 requests
BYTES_PER_ENTRY = 550
LONGEST_WINDOW = 400  # on-time rounds: exports end before the oldest set with an open forecast
LONGEST_UNSTATED_SECONDS = 3600  # the log states what changed every ten seconds, unless it is paused
START_SECONDS = 300  # in which a process that was off for long states what it received before


def make_file():
    """A file on disk that disappears with the script: exports and statements may be larger than the memory."""
    return tempfile.TemporaryFile("w+", encoding="utf-8", newline="")


def read_lines(file):
    file.seek(0)
    return file


def download(url, kind, table):
    """A file with the rows of a public export; None if the server has no such table."""
    file, header = make_file(), None
    start = path = f"/log/export/{kind}/{table}"
    for _ in range(MOST_PAGES):
        page = fetch(url + path)
        if page is None:
            return None
        names, _, rows = page[0].decode().partition("\n")
        if header is None:
            file.write(f"{names}\n")
            header = names
        elif names != header:
            fail(f"expected each page of {start} to begin with {header}, found {names}")
        file.write(rows)
        if not page[1]:
            return file
        if not page[1].startswith(start + "?") or page[1] == path:
            fail(f"expected another page of {start} after {path}, found {page[1]}")
        path = page[1]
    report_limit("MOST_PAGES", f"expected at most {MOST_PAGES} pages of {start}")


class Chain:
    """The rows of an export one by one, with their hashes recomputed from the columns."""

    def __init__(self, kind, file, wanted=()):
        self.kind, self.rows, self.count, self.hash = kind, csv.DictReader(read_lines(file)), 0, FIRST_HASH
        self.fields, self.wanted, self.found = sorted(FIELDS[kind].split()), wanted, {FIRST_HASH}

    def step(self):
        """The next row; None after the last one."""
        row = next(self.rows, None)
        if row is None:
            return None
        text = json.dumps({name: row[name] for name in self.fields}, separators=(",", ":"), ensure_ascii=False)
        self.hash, self.count = hashlib.sha256(f"{self.hash}\n{text}".encode()).hexdigest(), self.count + 1
        if self.hash != row["history_hash" if self.kind == "rounds" else "hash"]:
            fail(f"expected hash {self.hash} in {self.kind}, found another in {row}")
        if self.kind != "scores" and row["seq"] != str(self.count):
            fail(f"expected seq {self.count} in {self.kind}, found {row['seq']}")
        if self.hash in self.wanted:
            self.found.add(self.hash)
        return row

    def reach(self, number, expected, table):
        """Compares the hash of a row with that of a statement."""
        while self.count < number and self.step():
            pass
        if self.count < number:
            fail(f"expected {self.kind} {number} of {table} with hash {expected}, as the log states, found {self.count}: {REMOVED}")
        if self.count > number or self.hash != expected:
            fail(f"expected {self.kind} {number} of {table} with hash {expected}, as the log states")


def read_clocks():
    """The wall clock may be set, the other one may stop while the machine sleeps: only a time between two reads is used."""
    return time.time(), time.monotonic()


class Log:
    """The entries of the log about a table, and what they state at most."""

    def __init__(self, table):
        self.table, self.file, self.first, self.clocks = table, make_file(), b"", read_clocks()
        self.count, self.newest, self.revisions, self.warning = 0, None, set(), ""
        self.witnesses = []  # their keys, as the log stated last
        self.kept_size, self.oldest, self.newest_kept = 0, None, None  # the size of the kept checkpoint, if older entries are skipped

    def keep(self, entry, index):
        if index == 0:
            self.first = entry
        is_read = self.table or b'"kind":"witnesses"' in entry
        statement = json.loads(entry) if is_read else {}
        if statement.get("kind") == "witnesses":
            self.witnesses = statement["keys"]
        if statement.get("table") != self.table or statement.get("kind") not in ("table", "accuracy"):
            return
        if self.kept_size and statement["kind"] == "accuracy" and not self.count:
            return  # other rows of it may be in an entry that is not read
        self.file.write(json.dumps(statement) + "\n")
        if statement["kind"] == "table":
            self.count, self.newest, self.oldest = self.count + 1, statement, self.oldest or statement
            if index < self.kept_size:
                self.newest_kept = statement
        else:
            self.revisions.add(statement["score_revision_hash"])

    def check_start(self):
        """Fails if the search for the first entry was misled: its bundles are checked only when they are read again."""
        if self.table and not (self.newest_kept and is_far_before(self.oldest, self.newest_kept)):
            fail(f"expected a statement about {self.table} that lies {LONGEST_WINDOW} on-time rounds before the kept checkpoint, "
                 "as was read before, found none: the server sent two versions of an entry")

    def age(self):
        """The most seconds that may have passed since its checkpoint was read."""
        return max(0, *(now - then for now, then in zip(read_clocks(), self.clocks)))

    def read(self, kind):
        """Each statement of a kind, with the number of statements about the table before it."""
        before = 0
        for line in read_lines(self.file):
            statement = json.loads(line)
            if statement["kind"] == kind:
                yield before, statement
            before += statement["kind"] == "table"


seconds_of = lambda text: datetime.datetime.fromisoformat(text[:19] + "+00:00").timestamp()


class Reach:
    """How far the statements of the log and the exports of a table go."""

    def __init__(self):
        self.rounds = self.on_time = self.forecasts = self.statements = self.stated_round = 0
        self.first_stated = self.longest = self.longest_at = self.resets = 0
        self.revisions = set()


class Unstated:
    """
    Rounds after the newest statement. Only polled rounds show that time passed in which a process ran: the clock of the
    reader may be wrong, and while no process runs the log is not paused.
    """

    def __init__(self, table, log_age):
        self.table, self.log_age, self.first, self.hour_later = table, log_age, None, None

    def see(self, row):
        at = seconds_of(row["received_at"])
        self.first = self.first or (row["seq"], at)
        seq, first_at = self.first
        if row["source"] != "poll" or at - first_at <= LONGEST_UNSTATED_SECONDS:
            return
        self.hour_later = self.hour_later or at
        if at - self.hour_later > START_SECONDS + self.log_age:
            fail(f"expected a statement about round {seq} of {self.table}, found none, though round {row['seq']} was received "
                 f"{(at - first_at) / 60:.0f} minutes later: no process has stated it, the log is paused or its worker is off, "
                 "and until then anything about it may be changed. If a backlog was read just now, this is over in a minute: try again")


def check_statements(log, files):
    """Compares every statement about the table with its exports, as far as these are public."""
    table, reach = log.table, Reach()
    rounds, forecasts, scores = (Chain(kind, files[kind], log.revisions) for kind in KINDS)
    for before, entry in log.read("table"):
        number, first = int(entry["round_seq"]), None
        while rounds.count < number and (row := rounds.step()):
            reach.on_time += row["late"] == "false"
            first = first or row
            last = row
        if rounds.count < number:
            break  # not public yet
        rounds.reach(number, entry["history_hash"], table)
        forecasts.reach(int(entry["forecast_seq"]), entry["forecast_hash"], table)
        while scores.hash != entry["score_hash"] and scores.step():
            pass
        if scores.hash != entry["score_hash"]:
            fail(f"expected a score of {table} with hash {entry['score_hash']}, as the log states: if none was changed, {REMOVED}")
        if reach.on_time != int(entry["on_time_rounds"]):
            fail(f"expected {entry['on_time_rounds']} on-time rounds up to {number} of {table}, as the log states, found {reach.on_time}")
        reach.statements, reach.stated_round, reach.forecasts = before + 1, number, forecasts.count
        reach.first_stated = reach.first_stated or number
        if first and before:  # when a round was received is fixed only by the statement that follows
            span = seconds_of(last["received_at"]) - seconds_of(first["received_at"])
            reach.longest, reach.longest_at = max((reach.longest, reach.longest_at), (span, number))
    unstated = Unstated(table, log.age())
    is_stated = reach.statements < log.count
    while row := rounds.step():
        reach.on_time += row["late"] == "false"
        if not is_stated:
            unstated.see(row)
    for chain in (forecasts, scores):
        while chain.step():
            pass
    reach.rounds, reach.revisions = rounds.count, scores.found
    check_end(log, reach)
    return reach


def check_end(log, reach):
    """Fails if the exports end earlier than the longest open window allows. Any number of late rounds may follow it."""
    if log.newest is None:
        return
    least, last = int(log.newest["on_time_rounds"]) - LONGEST_WINDOW, 0
    for _, entry in log.read("table"):
        if int(entry["on_time_rounds"]) <= least:
            last = max(last, int(entry["round_seq"]))
    if reach.on_time < least or reach.rounds < last:
        fail(
            f"expected the exports of {log.table} to reach round {last} and {least} on-time rounds, since the log states "
            f"{log.newest['on_time_rounds']} up to round {log.newest['round_seq']}, found {reach.on_time} up to round {reach.rounds}: "
            "rows were removed, one process is behind another one, or scoring is paused, which `pending` of its accuracy shows"
        )


def choose_accuracy(log, reach):
    """
    The newest accuracy statement that the exports cover, with each row as it was stated last: one that did not change is
    not stated again. None if there is none.
    """
    chosen, rows = None, {}
    for before, entry in log.read("accuracy"):
        cutoff, settled, revision = (entry[name] for name in ("cutoff_seq", "settled_seq", "score_revision_hash"))
        if int(cutoff) <= reach.rounds and int(settled) <= reach.rounds and revision in reach.revisions:
            chosen = entry
            rows |= {(row["model"], row["feature"]): row for row in entry["rows"]}
        elif before < reach.statements:  # it cannot count what a later statement does not have yet
            fail(f"expected an accuracy statement about {log.table} that its exports cover, found one up to cutoff {cutoff}, "
                 f"settled round {settled} and revision {revision}, before a statement that they cover")
    return chosen and chosen | {"rows": rows}


def number_of(round_id):
    """The number of a round, if its id is one."""
    return int(round_id) if re.fullmatch(r"0|[1-9][0-9]{0,17}", round_id) else None


class Span:
    """A forecast, and what the on-time rounds after its cutoff give."""

    def __init__(self, forecast):
        self.forecast, self.left = forecast, int(forecast["horizon"])
        self.next_number = number_of(forecast["target_round_id"])
        window = re.fullmatch(r"window:(.*):\d+", forecast["feature"])
        self.color = window and window[1]
        self.outcome, self.fault, self.end = "0" if window else "", "", None

    def see(self, round):
        """Adds the next round. The forecast ends with its last one, or with the first fault."""
        self.left -= 1
        if round["after_gap"] == "true" or self.next_number not in (None, number_of(round["round_id"])):
            self.fault = "gap"
        elif round["requested_at"] <= self.forecast["issued_at"]:  # of an imported round it is empty
            self.fault = "late"
        elif self.color is None:
            self.outcome = round["color"]
        elif self.color == round["color"]:
            self.outcome = "1"
        if self.next_number is not None:
            self.next_number += 1
        if self.fault or self.left == 0:
            self.end = round

    def score(self):
        """The score that the forecast must have."""
        status, outcome = (f"void_{self.fault}", "") if self.fault else ("scored", self.outcome)
        return {"status": status, "reason": self.fault, "outcome": outcome, **settled_by(self.end)}


settled_by = lambda round: {"settled_seq": round["seq"], "target_requested_at": round["requested_at"]}
DISPUTES = "conflict", "operator"  # a second result of the house, a decision of staff: exports do not show them


def compare(found, expected, forecast_id, source):
    for name, value in expected.items():
        if found[name] != value:
            fail(f"expected {name} {value or 'none'} of {forecast_id}, {source}, found {found[name] or 'none'}")


class Sums:
    """What an accuracy row counts. `hits` and `losses` have a list for each outcome: of each place that it may have in p_ppm."""

    def __init__(self):
        self.forecasts = self.scored = self.voids = self.places = 0
        self.hits, self.losses = {}, {}

    def add(self, forecast, outcome):
        self.scored += 1
        hits, losses = self.hits.setdefault(outcome, [0] * self.places), self.losses.setdefault(outcome, [0] * self.places)
        p = chances_of(forecast)
        likeliest = 0 if len(p) == 2 and forecast["feature"] != "next_color" else p.index(max(p))
        hits[likeliest] += 1
        for place, ppm in enumerate(p):
            losses[place] += math.floor(-math.log(ppm / 1e6) * 1e6 + 0.5)


def chances_of(forecast):
    """The probabilities of a forecast in ppm; of a window those of a hit and of none."""
    p = [int(ppm) for ppm in forecast["p_ppm"].split("|")]
    if forecast["feature"] != "next_color":
        p.append(1_000_000 - sum(p))
    if min(p) < 1 or sum(p) != 1_000_000:
        fail(f"expected probabilities of {forecast['forecast_id']} with the sum 1000000, found {forecast['p_ppm']}")
    return p


class Numbers:
    """
    The numbers of on-time rounds. With consecutive ids a forecast names the number of its round, and only a missing number
    is a gap. A reset of a wrong newest number is an exception, which exports do not show.
    """

    def __init__(self, table):
        self.table, self.newest, self.is_consecutive, self.resets = table, None, None, 0

    def see(self, round):
        number = number_of(round["round_id"])
        if round["late"] == "false":
            if self.is_consecutive and number is None:
                fail(f"expected a number as round_id of round {round['seq']} of {self.table}, found {round['round_id']}")
            if self.is_consecutive:
                is_next = number == self.newest + 1
                self.resets += number <= self.newest or (is_next and round["after_gap"] == "true")
            self.newest = number
        elif self.is_consecutive and round["source"] == "poll" and number is not None and number > self.newest:
            fail(f"expected an on-time round {number}, which is above the newest number {self.newest}, found a late one")

    def check_target(self, forecast):
        """The target after the newest round, which all forecasts of a table have or none."""
        target, found = "" if self.newest is None else str(self.newest + 1), forecast["target_round_id"]
        if self.is_consecutive is None:
            self.is_consecutive = found != ""
        if not self.is_consecutive:
            target = ""
        if found != target:
            fail(f"expected target_round_id {target or 'none'} of {forecast['forecast_id']}, as other forecasts have "
                 f"{'one' if target else 'none'}, found {found or 'none'}")


class Replay:
    """Goes through the rounds of a table in order, derives each score, and sums what an accuracy statement covers."""

    def __init__(self, table, files, stated):
        self.cutoff, self.settled = (int(stated[name]) if stated else 0 for name in ("cutoff_seq", "settled_seq"))
        self.open, self.sums, self.colors, self.issued, self.numbers = {}, {}, {}, 0, Numbers(table)
        self.rows = {kind: csv.DictReader(read_lines(files[kind])) for kind in ("rounds", "forecasts")}
        self.revised, self.voided = {}, set()  # forecasts with a later score, and those that the statement counts as void
        counts = stated is not None and stated["score_revision_hash"] != FIRST_HASH
        for row in csv.DictReader(read_lines(files["scores"])):
            if row["rev"] != "1":
                self.revised[row["forecast_id"]] = None
                if counts:
                    self.voided.add(row["forecast_id"])
            counts = counts and row["hash"] != stated["score_revision_hash"]
        self.scores = csv.DictReader(read_lines(files["scores"]))

    def run(self):
        forecast, score = next(self.rows["forecasts"], None), next(self.scores, None)
        for round in self.rows["rounds"]:
            least, most = self.colors.get(round["color"], (math.inf, 0))
            hundredths = int(round["hundredths"])
            self.colors[round["color"]] = min(least, hundredths), max(most, hundredths)
            self.numbers.see(round)
            if round["late"] != "false":
                continue
            for span in self.open.values():
                span.see(round)
            while score and (score["rev"] != "1" or int(score["settled_seq"]) <= int(round["seq"])):
                self.settle(score, round)
                score = next(self.scores, None)
            for forecast_id, span in self.open.items():
                if span.end:
                    fail(f"expected a score of {forecast_id}, which ended with round {round['seq']}, found none: if none was removed, "
                         "one process is behind another one; try again")
            while forecast and forecast["cutoff_round_id"] == round["round_id"]:
                self.issue(forecast, round)
                forecast = next(self.rows["forecasts"], None)

    def issue(self, forecast, round):
        """Adds a forecast after its cutoff."""
        self.numbers.check_target(forecast)
        compare(forecast, {"history_hash": round["history_hash"]}, forecast["forecast_id"], "as its cutoff has")
        if forecast["feature"] == "next_color":
            compare(forecast, {"horizon": "1"}, forecast["forecast_id"], "as a forecast of the next color")
        if not 1 <= int(forecast["horizon"]) <= LONGEST_WINDOW:
            fail(f"expected a horizon of 1 to {LONGEST_WINDOW} of {forecast['forecast_id']}, found {forecast['horizon']}")
        sums = self.sums.setdefault((forecast["model"], forecast["feature"]), Sums())
        places = len(chances_of(forecast))
        sums.places = sums.places or places
        if places != sums.places:
            fail(f"expected {sums.places} probabilities of {forecast['forecast_id']}, found {places}")
        sums.forecasts += int(round["seq"]) <= self.cutoff
        self.open[forecast["forecast_id"]] = Span(forecast)
        self.issued += 1

    def settle(self, score, round):
        """Compares a score with what the rounds up to this one give."""
        forecast_id = score["forecast_id"]
        void = {"status": f"void_{score['reason']}", "outcome": ""}
        if score["rev"] != "1":
            first = self.revised[forecast_id]
            if first is None or first["status"] != "scored" or score["reason"] not in DISPUTES:
                fail(f"expected a void after a score of {forecast_id}, found {score}")
            rev = {"rev": str(int(first["rev"]) + 1)}
            same = {name: first[name] for name in ("settled_seq", "target_requested_at")}
            compare(score, void | rev | same, forecast_id, "as its first score has")
            self.revised[forecast_id] = score
            return
        span = self.open.pop(forecast_id, None)
        if span is None:
            fail(f"expected the score of an open forecast, found another score of {forecast_id}")
        if score["reason"] in DISPUTES:
            expected = void | settled_by(round)
        elif span.end is None:
            fail(f"expected no score of {forecast_id}, which has not ended with round {round['seq']}, found {score}")
        else:
            expected = span.score()
        compare(score, expected, forecast_id, "as its rounds give")
        if forecast_id in self.revised:
            self.revised[forecast_id] = score
        sums = self.sums[span.forecast["model"], span.forecast["feature"]]
        if forecast_id in self.voided:
            sums.voids += 1
        elif int(score["settled_seq"]) <= self.settled:
            if score["status"] == "scored":
                sums.add(span.forecast, score["outcome"])
            else:
                sums.voids += 1


def order_of(colors, table):
    """The colors of a table by their multipliers, lowest first."""
    order = sorted(colors, key=lambda color: colors[color])
    for lower, upper in zip(order, order[1:]):
        if colors[lower][1] >= colors[upper][0]:
            fail(f"expected colors that do not overlap, found multipliers of {lower} in {upper} of {table}")
    return order


def check_accuracy(log, reach, files):
    """Derives all scores, and recomputes the newest accuracy statement about the table; what was compared."""
    stated = choose_accuracy(log, reach)
    replay = Replay(log.table, files, stated)
    replay.run()
    reach.resets = replay.numbers.resets
    if replay.issued < reach.forecasts:
        fail(f"expected forecasts up to {reach.forecasts} after rounds of {log.table}, found the cutoffs of {replay.issued}")
    order = order_of(replay.colors, log.table)
    for (_, feature), sums in replay.sums.items():
        if feature == "next_color" and len(order) > sums.places:
            fail(f"expected {sums.places} colors of {log.table}, as its forecasts have, found {len(order)}: {', '.join(order)}")
    if stated is None:
        return "no accuracy statement " + ("in what was read" if log.kept_size else "yet")
    rows = stated["rows"]
    unread = 0  # stated before what was read, and not since
    for (model, feature), sums in replay.sums.items():
        if not sums.forecasts or (model, feature) in rows:
            continue
        unread += 1
        if not log.kept_size:
            fail(f"expected an accuracy row of {feature} by {model} of {log.table}, the log states none")
    for (model, feature), row in rows.items():
        check_row(row, replay.sums.get((model, feature), Sums()), order if feature == "next_color" else ["1", "0"])
    return f"{len(rows)} accuracy rows up to round {stated['settled_seq']}" + (f"; {unread} {'was' if unread == 1 else 'were'} stated before what was read" if unread else "")


def check_row(row, sums, order):
    """Compares a row. While a color did not occur its place is unknown: each one that it may have is tried."""
    counts = [str(sums.forecasts), str(sums.scored), str(sums.voids)]
    if counts != [row["forecasts"], row["scored"], row["voids"]]:
        fail(f"expected {counts} forecasts, scores and voids of {row['feature']}, the log states {row}")
    total = lambda lists, places: sum(lists[outcome][place] for outcome, place in zip(order, places) if outcome in lists)
    found = [(total(sums.hits, places), total(sums.losses, places)) for places in itertools.combinations(range(sums.places), len(order))]
    if sums.scored and (int(row["hits"]), int(row["log_loss"])) not in found:
        fail(f"expected {' or '.join(f'{hits}, {loss}' for hits, loss in found)} as hits and log loss of {row['feature']}, the log states {row}")
    if not sums.scored and (row["hits"], row["log_loss"]) != ("0", "0"):
        fail(f"expected no hits and log loss of {row['feature']} without scores, the log states {row}")


def check_table(url, log):
    """Checks what the log states about a table; what was compared."""
    files = {kind: download(url, kind, log.table) for kind in KINDS}
    if None in files.values():
        if log.newest is None:
            stop(2, f"expected --table HOUSE/GAME/MARKET, found {log.table}, which neither the log nor the exports have")
        fail(f"expected exports of {log.table}, about which the log has {log.count} statements, found none: {REMOVED}")
    reach = check_statements(log, files)
    accuracy = check_accuracy(log, reach, files)
    newest = log.newest["round_seq"] if log.newest else 0
    text = f"; {reach.statements} statements and {accuracy} follow from the exports, compared up to round {reach.stated_round} of {newest} that the log states"
    if reach.statements:
        text += f"; statements before round {reach.first_stated} were not read" if log.kept_size else ""
        text += f"; the first statement covers {reach.first_stated} rounds, and the longest time without one after it was "
        text += f"{datetime.timedelta(seconds=reach.longest)}" + (f", up to round {reach.longest_at}" if reach.longest else "")
    if reach.resets:
        log.warning = (f"{reach.resets} rounds of {log.table} have a number that is not above the newest one, or follow a gap although "
                       "no number is missing: only a reset of its newest number explains that, which exports do not show")
    return text


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--kept", metavar="FILE", help="a checkpoint that was kept earlier")
    parser.add_argument("--kept-at", metavar="TIME", type=parse_time, help="when it was kept")
    parser.add_argument("--since-kept", action="store_true", help="read only what was not compared when it was kept")
    parser.add_argument("--keep", metavar="FILE", help="where to keep the checkpoint, if everything is right; may be that of --kept")
    parser.add_argument("--table", metavar="HOUSE/GAME/MARKET", help="a table whose record is checked too")
    given = parser.parse_args()
    if not re.match(r"https?://[^/]", given.url):
        parser.error(f"expected an address such as http://127.0.0.1:3000, found {given.url}")
    if given.table and not re.fullmatch(r"[\w.-]+/[\w.-]+/[\w.-]+", given.table, re.ASCII):
        parser.error(f"expected a table as HOUSE/GAME/MARKET, found {given.table}")
    if given.since_kept and not given.kept:
        parser.error("expected --kept FILE with --since-kept, found none")
    try:
        return given, given.kept and Kept(given.kept, given.kept_at)
    except (OSError, ValueError) as error:
        parser.error(f"expected a kept checkpoint in {given.kept}, found another file: {error}")


def main():
    given, kept = read_options()
    url = given.url.rstrip("/")
    typed_key, note, checkpoint = read_checkpoint(url, kept)
    origin, size, _ = checkpoint
    log = Log(given.table)
    is_since = given.since_kept and kept.origin == origin
    start = find_start(url, size, kept, given.table) if is_since else 0
    log.kept_size = kept.size if start else 0
    if (count := size - 256 * start) > MANY_ENTRIES:
        show(f"reads {count} entries about all tables, some {count * BYTES_PER_ENTRY // 1_000_000} MB"
             + ("" if is_since else ": --kept FILE --since-kept reads only those after a kept checkpoint"), sys.stderr)
    read_log(url, checkpoint, kept, log, start)
    if start:
        log.check_start()
    declaration = describe_declaration(log.first, origin, typed_key) if size else None
    report = f"{origin}: {size} entries lead to the signed root"
    if start:
        report += f", of which those from {256 * start} on were read"
    if log.witnesses:
        report += f"; the log names the witnesses {', '.join(log.witnesses)}"
    if given.table:
        report += check_table(url, log)
    declared = compare_declared(kept, origin, declaration) if kept and kept.origin != origin else ""
    if declaration and not declared:
        report += f"; {declaration[1]}"
    show(f"ok: {report}")
    if log.warning:
        show(f"warning: {log.warning}")
    if declared:
        stop(4, f"DECLARED: {declared}")
    if given.keep:
        keep_checkpoint(given.keep, note, log.clocks[0])


if __name__ == "__main__":
    try:
        main()
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        fail(f"expected responses in the form that docs/record.md describes, found another one: {error!r}")
