extension MarmotProtocol {
    static let metricHelp = [
        "sealbell_nostr_relays_connected": "Inbox relays whose subscription is in force.",
        "sealbell_nostr_relays_configured": "Inbox relays that are configured.",
        "sealbell_nostr_events_queued": "Events that wait to be opened.",
        "sealbell_nostr_events_passed_over_total": "Events that fall to another process on the same store.",
        "sealbell_nostr_events_held": "Events of others that are held in case their process has died.",
        "sealbell_nostr_events_taken_up_total": "Events of others that were opened here after all.",
        "sealbell_nostr_events_total": "Events taken to be opened, as they came or out of a relay's store.",
        "sealbell_nostr_relay_notes_total": "What relays do.",
        "sealbell_marmot_wraps_total": "What became of each wrap.",
        "sealbell_marmot_remembered": "Keys in memory, of repeats and budgets."
    ]
}
