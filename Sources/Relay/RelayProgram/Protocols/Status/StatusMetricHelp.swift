extension StatusProtocol {
    static let metricHelp = [
        "sealbell_waku_listening": "Whether the Waku node hands on what it hears.",
        "sealbell_waku_topics": "Content topics that are followed.",
        "sealbell_waku_queued": "Messages that wait to be taken.",
        "sealbell_waku_publishing": "Messages that are being published, or wait for it.",
        "sealbell_waku_messages_total": "What became of each message that the node handed on.",
        "sealbell_waku_published_total": "What became of each message that was to be published.",
        "sealbell_waku_notes_total": "What the Waku node does.",
        "sealbell_status_messages_total": "What became of each message on a topic that is followed.",
        "sealbell_status_gateway_calls_total": "What became of each call of an external gorush."
    ]
}
