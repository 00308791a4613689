"""Nextcloud's part of `scripts/bench`."""


def part(run, row):
    """Batches judged beside bare verification, on one core."""
    told = run("nextcloud", "nextcloud")
    if not told:
        return
    for title, name in [("32 users", "users_32"), ("500 users", "users_500")]:
        ratio = told[f"{name}_to_bare"]
        row(">= 0.7", f"entries judged / bare RSA-2048 verification, {title}", f"{ratio:.2f}",
            f"{told[f'{name}_judged_per_second']}/s of {told[f'{name}_bare_verifications_per_second']}/s; with new keys "
            f"{told[f'{name}_judged_with_new_keys_per_second']}/s, {told[f'{name}_with_new_keys_to_bare']:.2f}",
            ratio >= 0.7)
        row("", f"a call of {told['entries']} entries, from body to verdict, {title}",
            f"{told[f'{name}_call_milliseconds']:.1f} ms", "without socket and store")
