#!/usr/bin/env python3
"""Checks the public log of a Roundhouse instance without any of its code: Python's standard library only.

    python3 verify_record.py URL [--kept FILE [--kept-at TIME]] [--table HOUSE/GAME/MARKET]

It checks the signature of the newest checkpoint, the whole tree from its entries, the inclusion of every entry in the
tiles, and that a kept checkpoint is the beginning of the log. Of a table it downloads rounds, forecasts and scores,
recomputes their chains, compares them with every statement of the log, and recomputes the accuracy rows that the log
states. What is newer than the oldest open forecast is not public yet and not compared: at most 400 on-time rounds,
which the longest window has. It exits with 1 at the first thing that is wrong, and with 3 if the process that responds
is behind another one: its log is shorter than a checkpoint that was kept within the last hour, or it lacks a tile of
entries that no checkpoint covers that was kept for longer. A checkpoint was kept at TIME, else when its file was written
or, if that is earlier, when a witness cosigned it: a copy of a file may have a new time.
"""
import argparse, base64, csv, datetime, hashlib, json, math, os, re, sys, time, urllib.error, urllib.request

sha256 = lambda *parts: hashlib.sha256(b"".join(parts)).digest()
leaf_hash = lambda entry: sha256(b"\0", entry)


def fail(text):
    sys.exit(f"WRONG: {text}")


def report_behind(text, alternative=""):
    print(f"BEHIND: {text}: this process serves an older log than another one{alternative}; try again", file=sys.stderr)
    sys.exit(3)


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


def open_checkpoint(note, verifier_key):
    """Origin, size and root of a signed note."""
    name, _, key = verifier_key.split("+", 2)
    typed = base64.b64decode(key)
    key_id = hashlib.sha256(name.encode() + b"\n" + typed).digest()[:4]
    text, _, signatures = note.rpartition("\n\n")
    text += "\n"
    for line in signatures.splitlines():
        _, signer, data = line.split(" ")
        data = base64.b64decode(data)
        if signer == name and data[:4] == key_id and is_signed(typed[1:], text.encode(), data[4:]):
            origin, size, root = text.split("\n")[:3]
            return origin, int(size), base64.b64decode(root)
    fail("expected a checkpoint that the log's key signed")


LONGEST_LAG_SECONDS = 3600  # a process that reads from a replica may be behind; after longer the log was shortened


def read_checkpoint(get, key, kept, kept_at):
    """The newest checkpoint. A log that is shorter than the kept checkpoint is read again: another process may respond."""
    for seconds in (1, 2, 4, None):
        origin, size, root = open_checkpoint(get("checkpoint"), key)
        if not kept or kept[0] != origin or kept[1] <= size:
            return origin, size, root
        if seconds:
            time.sleep(seconds)
    age = time.time() - kept_at
    if age > LONGEST_LAG_SECONDS:
        fail(f"expected the log to have at least {kept[1]} entries, kept {age / 60:.0f} minutes ago, found {size}: it was shortened")
    report_behind(f"expected a log of at least {kept[1]} entries, found {size}")


def parse_time(text):
    try:
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a time such as 2026-11-28T14:00:00Z, found {text}")


def find_kept_time(note, written_at):
    """When a checkpoint existed: the time of its newest cosignature, which is not checked, or of its file if that is earlier."""
    signatures = [base64.b64decode(line.split(" ")[2]) for line in note.rpartition("\n\n")[2].splitlines()]
    # tlog-cosignature: four bytes of the key's id, eight of the time, 64 of the signature
    times = [int.from_bytes(signature[4:12], "big") for signature in signatures if len(signature) == 76]
    return min(written_at, max(times, default=written_at))


def root_of(leaves):
    """RFC 6962 §2.1."""
    if not leaves:
        return sha256()
    row = list(leaves)
    while len(row) > 1:  # the last of an odd number rises as it is
        row = [sha256(b"\1", *row[at : at + 2]) if at + 1 < len(row) else row[at] for at in range(0, len(row), 2)]
    return row[0]


def tile_path(n, width):
    text = f"{n % 1000:03}"
    while n := n // 1000:
        text = f"x{n % 1000:03}/{text}"
    return text if width == 256 else f"{text}.p/{width}"


def read_tile(url, level, n, size, kept_size, kept_at):
    """A tile of a log with this size. After the longest lag every process has the entries of the kept checkpoint."""

    def read(size):
        path = f"tile/{level}/{tile_path(n, min(256, size - 256 * n))}"
        try:
            return path, urllib.request.urlopen(f"{url}/log/{path}", timeout=30).read()
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return path, None

    path, tile = read(size)
    if tile is not None:
        return tile
    age = time.time() - kept_at
    if kept_size > 256 * n and age > LONGEST_LAG_SECONDS:
        path_then, tile_then = read(kept_size)  # a process that is behind has fewer entries in its last tile
        if tile_then is None:
            fail(f"expected {path_then}, which the checkpoint covers, kept {age / 60:.0f} minutes ago, found nothing: entries are withheld")
    report_behind(f"expected {path}, which the checkpoint covers, found nothing", ", or its entries are withheld")


def read_log(url, size, kept_size, kept_at):
    """All entries, and the leaf hashes that the tiles of level 0 give."""
    entries, tiles = [], []
    for n in range(math.ceil(size / 256)):
        bundle, hashes = (read_tile(url, level, n, size, kept_size, kept_at) for level in ("entries", 0))
        while bundle:
            length = int.from_bytes(bundle[:2], "big")
            entries.append(bundle[2 : 2 + length])
            bundle = bundle[2 + length :]
        tiles += [hashes[at : at + 32] for at in range(0, len(hashes), 32)]
    return entries, tiles


def read_export(url, kind, table):
    """The rows of a public export, page after page."""
    rows, path = [], f"/log/export/{kind}/{table}"
    while path:
        with urllib.request.urlopen(url + path, timeout=30) as page:
            rows += csv.DictReader(page.read().decode().splitlines())
            following = re.match(r'<(.*)>; rel="next"', page.headers.get("Link") or "")
            path = following and following[1]
    return rows


FIELDS = {
    "rounds": "absent_at after_gap color hundredths late occurred_at received_at requested_at round_id seq source",
    "forecasts": "absent_at base_ppm cutoff_round_id feature forecast_id history_hash horizon issued_at model p_ppm pause_ms seq table target_round_id",
    "scores": "forecast_id outcome reason rev scored_at settled_seq status target_requested_at",
}


def follow_chain(kind, rows):
    """The hash after each row, recomputed from the columns of the export."""
    previous, hashes = "0" * 64, []
    for row in rows:
        fields = {name: row[name] for name in sorted(FIELDS[kind].split())}
        text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
        previous = hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
        if previous != row["history_hash" if kind == "rounds" else "hash"]:
            fail(f"expected hash {previous} in {kind}, found another in {row}")
        hashes.append(previous)
    return hashes


REMOVED = "rows were removed, or one process is behind another one; try again"
LONGEST_WINDOW = 400  # on-time rounds: exports end before the oldest set with an open forecast


def check_statements(entries, table, rounds, forecasts, scores):
    """Every statement about the table against its exports, as far as these are public; their number, and how far they reach."""
    hashes = {kind: follow_chain(kind, rows) for kind, rows in (("rounds", rounds), ("forecasts", forecasts), ("scores", scores))}
    known, on_time = set(hashes["scores"]) | {"0" * 64}, [0]
    for row in rounds:
        on_time.append(on_time[-1] + (row["late"] == "false"))
    stated = [entry for entry in entries if entry["kind"] == "table" and entry["table"] == table]
    check_reach(stated, table, on_time)
    public = [entry for entry in stated if int(entry["round_seq"]) <= len(rounds)]
    for entry in public:
        for kind, name in (("rounds", "round_seq"), ("forecasts", "forecast_seq")):
            number, expected = int(entry[name]), entry["history_hash" if kind == "rounds" else "forecast_hash"]
            if number > len(hashes[kind]):
                fail(f"expected {kind} {number} of {table} with hash {expected}, as the log states, found {len(hashes[kind])}: {REMOVED}")
            if number and hashes[kind][number - 1] != expected:
                fail(f"expected {kind} {number} of {table} with hash {expected}, as the log states")
        if entry["score_hash"] not in known:
            fail(f"expected a score of {table} with hash {entry['score_hash']}, as the log states: if none was changed, {REMOVED}")
        if on_time[int(entry["round_seq"])] != int(entry["on_time_rounds"]):
            fail(f"expected {entry['on_time_rounds']} on-time rounds up to {entry['round_seq']} of {table}, as the log states")
    compared, newest = (rows[-1]["round_seq"] if rows else 0 for rows in (public, stated))
    return len(public), f"round {compared} of {newest} that the log states"


def check_reach(stated, table, on_time):
    """Fails if the exports end earlier than the longest open window allows. Any number of late rounds may follow it."""
    if not stated:
        return
    newest, rounds = stated[-1], len(on_time) - 1
    least = int(newest["on_time_rounds"]) - LONGEST_WINDOW
    last = max((int(entry["round_seq"]) for entry in stated if int(entry["on_time_rounds"]) <= least), default=0)
    if on_time[-1] < least or rounds < last:
        fail(
            f"expected the exports of {table} to reach round {last} and {least} on-time rounds, since the log states "
            f"{newest['on_time_rounds']} up to round {newest['round_seq']}, found {on_time[-1]} up to round {rounds}: rows "
            "were removed, one process is behind another one, or scoring is paused, which `pending` of its accuracy shows"
        )


def check_accuracy(entries, table, rounds, forecasts, scores):
    """The newest accuracy statements about the table from its exports; what was compared."""
    found = [entry for entry in entries if entry["kind"] == "accuracy" and entry["table"] == table]
    found = [entry for entry in found if int(entry["cutoff_seq"]) <= len(rounds)]
    if not found:
        return "no accuracy statement yet"
    stated, seqs = found[-1], {row["round_id"]: int(row["seq"]) for row in rounds}
    order = sorted({row["color"] for row in rounds}, key=lambda color: min(int(row["hundredths"]) for row in rounds if row["color"] == color))
    newest, last_revision = {}, stated["score_revision_hash"]
    is_counted = last_revision != "0" * 64
    for row in scores:
        if is_counted if row["rev"] != "1" else int(row["settled_seq"]) <= int(stated["settled_seq"]):
            newest[row["forecast_id"]] = row
        is_counted = is_counted and row["hash"] != last_revision
    if is_counted:
        fail(f"expected a revision of a score of {table} with hash {last_revision}, as the log states")
    covered = lambda entry: [entry.get(name) for name in ("cutoff_seq", "settled_seq", "score_revision_hash")]
    together = [entry for entry in found if covered(entry) == covered(stated)]
    rows = {(row["model"], row["feature"]): row for entry in together for row in entry["rows"]}
    issued = [f for f in forecasts if seqs.get(f["cutoff_round_id"], math.inf) <= int(stated["cutoff_seq"])]
    for model, feature in {(f["model"], f["feature"]) for f in issued} - rows.keys():
        fail(f"expected an accuracy row of {feature} by {model} of {table}, the log states none")
    unknown = 0
    for (model, feature), expected in rows.items():
        own = [f for f in issued if (f["model"], f["feature"]) == (model, feature)]
        ended = [(f, newest[f["forecast_id"]]) for f in own if f["forecast_id"] in newest]
        scored = [(f, s) for f, s in ended if s["status"] == "scored"]
        hits, loss = 0, 0
        # which chance belongs to which color is known once every color occurred
        is_known = feature != "next_color" or all(len(order) == len(f["p_ppm"].split("|")) for f, _ in scored)
        for forecast, score in scored if is_known else []:
            p = [int(ppm) for ppm in forecast["p_ppm"].split("|")]
            if feature == "next_color":
                likeliest, outcome = p.index(max(p)), order.index(score["outcome"])
            else:
                p, likeliest, outcome = [p[0], 1_000_000 - p[0]], 0, int(score["outcome"] != "1")
            hits += outcome == likeliest
            loss -= math.log(p[outcome] / 1e6) * 1e6
        unknown += not is_known
        counts = [str(len(own)), str(len(scored)), str(len(ended) - len(scored))]
        if counts != [expected["forecasts"], expected["scored"], expected["voids"]]:
            fail(f"expected {counts} forecasts, scores and voids of {feature}, the log states {expected}")
        if int(expected["hits"]) != hits if is_known else int(expected["hits"]) > len(scored):
            fail(f"expected {hits if is_known else f'at most {len(scored)}'} hits of {feature}, the log states {expected}")
        if is_known and abs(loss - int(expected["log_loss"])) > len(scored) + 1:
            fail(f"expected a log loss of {loss:.0f} micro-nats of {feature}, the log states {expected['log_loss']}")
    return f"{len(rows)} accuracy rows" + (f" ({unknown} without hits and log loss: a color did not occur yet)" if unknown else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url")
    for name in ("kept", "table"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--kept-at", type=parse_time)
    given = parser.parse_args()
    url = given.url.rstrip("/")
    get = lambda path: urllib.request.urlopen(f"{url}/log/{path}", timeout=30).read().decode()
    key = get("key").strip()
    note = given.kept and open(given.kept, encoding="utf-8").read()
    kept = given.kept and open_checkpoint(note, key)
    kept_at = given.kept_at or (find_kept_time(note, os.path.getmtime(given.kept)) if kept else 0)
    origin, size, root = read_checkpoint(get, key, kept, kept_at)
    entries, tiles = read_log(url, size, kept[1] if kept and kept[0] == origin else 0, kept_at)
    leaves = [leaf_hash(entry) for entry in entries]
    if len(leaves) != size or root_of(leaves) != root:
        fail(f"expected {size} entries that lead to the signed root, found {len(leaves)}")
    if leaves != tiles:
        fail("expected the tiles to hold the hashes of the entries")
    if kept and (kept[0] != origin or root_of(leaves[: kept[1]]) != kept[2]):
        fail("expected the log to grow from the kept checkpoint: it was changed")
    report = f"{origin}: {size} entries lead to the signed root"
    if given.table:
        exports = [read_export(url, kind, given.table) for kind in ("rounds", "forecasts", "scores")]
        statements = [json.loads(entry) for entry in entries]
        count, reach = check_statements(statements, given.table, *exports)
        accuracy = check_accuracy(statements, given.table, *exports)
        report += f"; {count} statements and {accuracy} follow from the exports, compared up to {reach}"
    print(f"ok: {report}")


if __name__ == "__main__":
    main()
