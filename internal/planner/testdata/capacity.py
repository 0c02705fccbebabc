"""The field's capacity function as a planner of its own: JSON in, JSON out."""
import json
import sys

GIB = 1024**3
given = json.load(sys.stdin)["inputs"]

weights = given["params"] * given["dtype_bytes"] / GIB
usable = given["gpu_mem"] / GIB * given["utilisation"]
free = usable - weights / given["tp"]
max_seqs = int(free / (given["kv_per_request"] / 1e9))
residence = given["ttft_p50"] + given["output"] * given["tpot_p50"]
concurrency = given["rate"] * residence
effective = max_seqs * given["safety"]
if effective <= 0:
    sys.exit("one GPU has no room for a request of this size")
minimum = max(int(concurrency / effective) + 1, int(given["tp"]))

json.dump({
    "weights": weights,
    "max_seqs": max_seqs,
    "concurrency": concurrency,
    "minimum": minimum,
    "gpus": minimum + 1,
}, sys.stdout)
