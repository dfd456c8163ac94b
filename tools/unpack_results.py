"""Put the records of results/runs back into a folder of results, so that `make results` goes on from them.

`python tools/unpack_results.py FOLDER`. What is in the folder already stays. Records that today's code does not
reproduce are unpacked too: `kuramotognn reproduce` finds them by their fingerprint and runs their cells again.
"""

import sys
from pathlib import Path

from kuramotognn.config.resolve import ConfigError, parse
from kuramotognn.sweeps.cells import Case, Cell, store
from kuramotognn.sweeps.records import Records

PACKED = Path(__file__).parent.parent / "results" / "runs"


def unpack(folder: Path) -> int:
    """Write the records that are missing; how many."""
    written = 0
    for record in Records(PACKED):
        try:
            case = Case(parse(record["config"]), record["outcome"])
        except ConfigError:  # A setting or model that is gone.
            continue
        path = Cell(case, record["split"], record["seed"]).path(folder)
        if not path.exists():
            store(record, path)
            written += 1
    return written


if __name__ == "__main__":
    print(f"{unpack(Path(sys.argv[1]))} records")
