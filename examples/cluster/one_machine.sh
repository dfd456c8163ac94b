#!/usr/bin/env bash
# A sweep on the Ray cluster of one machine: started here, stopped at the end. Give the same command again to go on.
set -euo pipefail
out=${1:-runs/depth}
trap 'ray stop' EXIT
ray start --head --num-cpus "${CPUS:-$(nproc)}" --include-dashboard=false
kuramotognn reproduce depth --datasets cora --splits 2 --out "$out" --cluster auto
