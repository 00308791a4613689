/// The help line of every metric family in a scrape. A family without a line here is shown without one, and a
/// test finds it; `docs/metrics.md` says the same at greater length, with the labels.
package enum MetricCatalogue {
    /// Name → help: one line, without a backslash or a line break. Protocols have theirs beside it.
    package static let help: [String: String] =
        owed.merging(lanes) { $1 }.merging(connections) { $1 }.merging(listeners) { $1 }.merging(itself) {
            $1
        }

    /// Upper bounds of histograms whose spans are not a request's: from what a quick push takes to the day
    /// for which one may be owed.
    static let bounds: [String: [Double]] = [
        "sealbell_push_latency_seconds": [
            0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 86_400
        ]
    ]

    private static let owed = [
        "sealbell_outbox_rows": "Pushes that the relay owes now; absent while the store does not say.",
        "sealbell_outbox_bytes": "Bytes of the pushes that the relay owes now.",
        "sealbell_outbox_oldest_seconds": "For how long the oldest push has been owed; 0 when none is.",
        "sealbell_pushes_set_aside": "Owed pushes that do not open, and that nobody sends.",
        "sealbell_records_set_aside": "Records that cannot be read or do not open, and that are none.",
        "sealbell_settle_backlog": "Answers of push services that wait for their commit.",
        "sealbell_clock_ahead_seconds": "By how much the clock is ahead of what is believed.",
        "sealbell_intake_refused_total": "Times that the store had no room for a request, or did not answer.",
        "sealbell_calls_held_total": "Calls that were held until there was room, or a store.",
        "sealbell_pushes_without_app_total": "Pushes for a bundle id that no app of the instance serves.",
        "sealbell_notes_total": "What a protocol's relay found worth counting."
    ]

    private static let lanes = [
        "sealbell_lane_pushes_in_memory": "Pushes of the lane that wait in memory.",
        "sealbell_lane_pushes_parked": "Pushes of the lane that wait in the store.",
        "sealbell_lane_halted": "1 while the lane sends nothing but probes.",
        "sealbell_lane_slowed": "1 while the lane sends few pushes, because all are refused.",
        "sealbell_lane_unanswered":
            "1 while the lane has had something to send and heard no word for a minute.",
        "sealbell_lane_destinations_held":
            "Destinations of the lane that take nothing or little now, where its service has many.",
        "sealbell_lane_addresses_waiting":
            "Addresses that the push service has refused for themselves and not accepted since.",
        "sealbell_push_answers_total": "Answers of the push service, under its literal word.",
        "sealbell_push_latency_seconds":
            "From a push's acceptance here to its acceptance by the push service, with all waits between.",
        "sealbell_pushes_repeated_total": "Pushes recognised as repeats and not sent again.",
        "sealbell_pushes_paced_total": "Pushes that their origin's pace has put off.",
        "sealbell_pushes_withheld_total":
            "Pushes not taken for their origin was too far ahead, in calls of which the rest was.",
        "sealbell_calls_unknown_total": "Calls that may have rung or not, and were not sent again.",
        "sealbell_pushes_unknown_total":
            "Other pushes that may have arrived or not, and were not sent a fifth time.",
        "sealbell_custody_ended_total": "Pushes that grew too old before they could be sent.",
        "sealbell_volatile_dropped_total": "Pushes that nobody may keep, dropped for want of room or time."
    ]

    private static let connections = [
        "sealbell_push_requests_total": "Requests to the push service.",
        "sealbell_push_requests_resent_total": "Requests sent again after GOAWAY or REFUSED_STREAM.",
        "sealbell_push_requests_refused_total": "Requests that the push service's connection refused.",
        "sealbell_push_requests_timed_out_total": "Requests that were not answered in time.",
        "sealbell_push_answers_late_total": "Answers that came after their request was given up.",
        "sealbell_push_streams_given_up": "Streams that were given up and may be answered yet.",
        "sealbell_push_deadline_seconds": "How long a request is waited for now.",
        "sealbell_push_requests_unknown_total": "Requests of which nobody knows whether they were taken.",
        "sealbell_push_connections": "Open connections to the push service.",
        "sealbell_push_connections_opened_total": "Connections opened to the push service.",
        "sealbell_push_connections_closed_total": "Connections to the push service that have ended.",
        "sealbell_push_connections_failed_total": "Connections to the push service that did not come about.",
        "sealbell_push_goaways_total": "GOAWAY frames met.",
        "sealbell_push_streams_in_use": "Streams taken.",
        "sealbell_push_streams_wanted": "Senders that wait for a stream."
    ]

    private static let listeners = [
        "sealbell_http_requests_total": "Requests, by instance and class of the answer.",
        "sealbell_http_request_seconds": "From the end of a request's head to its answer.",
        "sealbell_http_refusals_total": "What the server refused before any face saw it.",
        "sealbell_http_connections": "Open connections of the listener.",
        "sealbell_http_connections_refused_total": "Connections that there was no room for.",
        "sealbell_http_forwarded_unread_total":
            "Requests whose client a trusted proxy named in a way that cannot be read."
    ]

    private static let itself = [
        "sealbell_reloads_total": "Reloads, by what became of them.",
        "sealbell_alert": "1 while an operator is wanted.",
        "sealbell_alerts_untold_total": "Alerts that were too many for webhook and mail.",
        "sealbell_build_info": "The program's version and build; always 1.",
        "sealbell_metrics_dropped_total": "Series that were one too many, and are not kept.",
        "process_cpu_seconds_total": "Processor time of the process, in user and system mode.",
        "process_max_fds": "File descriptors that there may be.",
        "process_open_fds": "File descriptors that are open.",
        "process_resident_memory_bytes": "Resident memory.",
        "process_start_time_seconds": "When the process began, in Unix time.",
        "process_virtual_memory_bytes": "Virtual memory."
    ]
}
