"""Marmot's part of `scripts/bench`."""


def part(run, row):
    """Marmot's arithmetic beside the bare library's, on one core."""
    told = run("marmot", "marmot")
    if told:
        for title, name in [("seed", "seed"), ("mip05-280", "mip05_280"), ("mip05-1084", "mip05_1084"),
                            ("push-v1", "push_v1")]:
            ratio = told[f"open_{name}_to_bare"]
            row(">= 0.7", f"tokens opened / bare ECDH, {title}", f"{ratio:.2f}",
                f"{told[f'open_{name}_per_second']}/s of {told['bare_ecdh_per_second']}/s; beside ECDH with the lift "
                f"{told[f'open_{name}_to_bare_with_lift']:.2f}", ratio >= 0.7)
        for tokens, name in [(19, "push_v1_19"), (25, "mip05_280_25")]:
            ratio = told[f"relay_{name}_step_9_to_bare"]
            row(">= 0.7", f"the same, step 9 of a trigger of {tokens}", f"{ratio:.2f}",
                f"{told[f'relay_{name}_step_9_tokens_per_second']}/s; with unwrap and reading "
                f"{told[f'relay_{name}_tokens_per_second']}/s, {told[f'relay_{name}_to_bare']:.2f}", ratio >= 0.7)
        for tokens in [1, 19]:
            row("", f"unwrap of {tokens} / sum of its primitives", f"{told[f'unwrap_{tokens}_to_primitives']:.2f}",
                f"{told[f'unwrap_{tokens}_microseconds']} us, {told[f'unwrap_{tokens}_primitives_microseconds']} us")
