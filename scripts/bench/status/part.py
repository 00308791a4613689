"""Status's part of `scripts/bench`."""


def part(run, row):
    """Requests judged and answered beside their primitives, on one core; the key of a topic; many people."""
    told = run("status", "status")
    if not told:
        return
    for count, size in [(1, 0), (1, 600), (8, 0)]:
        name = f"notifications_{count}_bytes_{size}"
        ratio = told[f"{name}_to_primitives"]
        row(">= 0.7", f"sum of primitives / a request with {count} x {size} bytes", f"{ratio:.2f}",
            f"{told[f'{name}_microseconds']:.0f} us, {told[f'{name}_primitives_microseconds']:.0f} us; "
            f"{told[f'{name}_requests_per_second']}/s", ratio >= 0.7)
    row("", "the key of a topic, made once", f"{told['topic_key_milliseconds']:.1f} ms")
    people, mib = told["followed_people"], 2**20
    row("", f"a start with {people} people", f"{told['followed_start_seconds']:.2f} s",
        f"{told['followed_topics']} topics, {told['followed_table_bytes'] / mib:.1f} MiB; resident "
        f"{told['followed_resident_bytes_added'] / mib:.1f} MiB more than with 1000 people, whose start takes "
        f"{told['followed_start_seconds_few']:.2f} s")
    row("< 1", "a message on one of their topics / the key of a topic", f"{told['followed_cost_to_topic_key']:.3f}",
        f"own CPU {told['followed_kept_cpu_microseconds_a_message']:.0f} us where the key is in memory, "
        f"{told['followed_read_cpu_microseconds_a_message']:.0f} us where its row is read",
        told["followed_cost_to_topic_key"] < 1)
    most = max(told["followed_kept_resident_bytes_added"], told["followed_read_resident_bytes_added"])
    row("<= 16 MiB", f"{told['followed_messages']} messages, each about somebody else, add", f"{most / mib:.1f} MiB",
        f"{told['followed_kept_resident_bytes_added'] / mib:.1f} MiB where they are about few",
        most <= told["followed_growth_goal_bytes"])
