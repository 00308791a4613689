"""Status's part of `scripts/bench`."""


def part(run, row):
    """Requests judged and answered beside their primitives, on one core; the key of a topic."""
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
