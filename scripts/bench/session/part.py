"""Session's part of `scripts/bench`."""


def part(run, row):
    """Messages sealed beside their primitives, on one core; accounts shown to a swarm; a large start."""
    told = run("session", "session")
    if not told:
        return
    for devices in [1, 3]:
        for size in [200, 2500]:
            name = f"devices_{devices}_bytes_{size}"
            ratio = told[f"{name}_to_primitives"]
            row(">= 0.7", f"sum of primitives / a message of {size} bytes, devices: {devices}", f"{ratio:.2f}",
                f"{told[f'{name}_microseconds']:.2f} us, {told[f'{name}_primitives_microseconds']:.2f} us; "
                f"{told[f'{name}_notices_per_second']}/s", ratio >= 0.7)
    row("", f"{told['swarm_accounts']} accounts shown to {told['swarm_nodes']} nodes",
        f"{told['swarm_seconds']:.1f} s", f"own CPU {told['swarm_own_cpu_seconds']:.1f} s; most memory added "
        f"{told['swarm_own_peak_bytes_added'] / 2**20:.1f} MiB")
    table = told["start_table_bytes"]
    row("<= 16 MiB", f"a start with {told['start_subscriptions']} subscriptions adds", f"{table / 2**20:.1f} MiB",
        f"{told['start_seconds']:.1f} s; at most {told['start_peak_bytes_added'] / 2**20:.1f} MiB",
        table <= told["start_table_goal_bytes"])
