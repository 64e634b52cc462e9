"""Golden vectors of the record's hashes, made with Python's standard library alone.

python3 golden.py          prints the vectors (golden.json)
python3 golden.py --check  compares golden.json beside this file; exit code 1 on a difference
"""

import hashlib
import json
import pathlib
import sys

FIRST = "0" * 64


def chain_hash(previous, fields):
    """sha256(previous + "\\n" + RFC 8785 of an object of strings), in hexadecimal digits."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


ROUND = {
    "seq": "1",
    "round_id": "8812345",
    "hundredths": "187",
    "color": "blue",
    "source": "poll",
    "occurred_at": "",
    "requested_at": "2026-11-21T04:00:11.5000000Z",
    "received_at": "2026-11-21T04:00:11.7500000Z",
    "absent_at": "2026-11-21T04:00:09.5000000Z",
    "late": "false",
    "after_gap": "false",
}
FORECAST = {
    "seq": "1",
    "forecast_id": "f7-1",
    "table": "bustabit/crash/global",
    "model": "k7@1",
    "feature": "next_color",
    "issued_at": "2026-11-21T04:00:12.1234560Z",
    "absent_at": "2026-11-21T04:00:09.5000000Z",
    "pause_ms": "5000",
    "cutoff_round_id": "8812345",
    "history_hash": chain_hash(FIRST, ROUND),
    "target_round_id": "8812346",
    "horizon": "1",
    "p_ppm": "517000|386000|97000",
    "base_ppm": "515000|388000|97000",
}
SCORE = {
    "forecast_id": "f7-1",
    "rev": "1",
    "status": "scored",
    "reason": "",
    "outcome": "blue",
    "settled_seq": "2",
    "target_requested_at": "2026-11-21T04:00:26.5000000Z",
    "scored_at": "2026-11-21T04:00:26.9000000Z",
}
CHAINS = {
    "history": [
        ROUND,
        {**ROUND, "seq": "2", "round_id": "8812350", "hundredths": "100", "after_gap": "true",
         "occurred_at": "2026-11-21T04:00:20.0000000Z"},
        {**ROUND, "seq": "3", "round_id": 'é"\\\n\u0001€\u2028😀', "color": "rosa", "source": "import",
         "requested_at": "", "absent_at": "", "late": "true"},
    ],
    "forecast": [
        FORECAST,
        {**FORECAST, "seq": "9007199254740993", "forecast_id": "f7-9007199254740993", "feature": "window:pink:80",
         "target_round_id": "", "horizon": "16", "p_ppm": "811376", "base_ppm": "810000"},
    ],
    "score": [
        SCORE,
        {**SCORE, "rev": "2", "status": "void_conflict", "reason": "conflict", "outcome": ""},
        {**SCORE, "forecast_id": "f7-2", "outcome": "1", "settled_seq": "18"},
    ],
}


def vectors():
    made = {}
    for name, rows in CHAINS.items():
        previous, made[name] = FIRST, []
        for fields in rows:
            previous = chain_hash(previous, fields)
            made[name].append({"fields": fields, "hash": previous})
    return made


if __name__ == "__main__":
    made = vectors()
    if "--check" in sys.argv:
        kept = json.loads(pathlib.Path(__file__).with_name("golden.json").read_text())
        sys.exit(0 if kept == made else "golden.json holds other hashes")
    print(json.dumps(made, indent=2, ensure_ascii=False))
