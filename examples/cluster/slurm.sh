#!/usr/bin/env bash
#SBATCH --job-name=kuramotognn-sweep
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
#SBATCH --output=%x-%j.log
# A sweep over the nodes of a Slurm job: `sbatch examples/cluster/slurm.sh runs/depth`. The first node runs Ray's head and
# the command, which alone writes results; the others lend their processors. Submit it again to go on after a time limit.
#
# All nodes need the same Python environment (a shared folder, or a container) and the data sets under KURAMOTOGNN_DATA.
set -euo pipefail
out=${1:-runs/depth}
port=6379

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
address=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address | awk '{print $1}')

srun --nodes=1 --ntasks=1 -w "$head" ray start --head --node-ip-address="$address" --port="$port" \
    --num-cpus="$SLURM_CPUS_PER_TASK" --include-dashboard=false --block &
# Workers that start before the head is there give up.
until srun --overlap --nodes=1 --ntasks=1 -w "$head" ray status --address="$address:$port" > /dev/null 2>&1; do
    sleep 2
done
if [ "${#nodes[@]}" -gt 1 ]; then
    workers=$((${#nodes[@]} - 1))
    srun --nodes="$workers" --ntasks="$workers" --exclude="$head" \
        ray start --address="$address:$port" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
fi

srun --overlap --nodes=1 --ntasks=1 -w "$head" \
    kuramotognn reproduce depth --datasets cora --splits 100 --out "$out" --cluster "$address:$port"
