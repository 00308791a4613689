extension SessionProtocol {
    static let metricHelp = [
        "sealbell_swarm_nodes_known": "Storage nodes that oxend tells of.",
        "sealbell_swarm_nodes_ours": "Of these, those that fall to this process.",
        "sealbell_swarm_nodes_connected": "Of these, those that are connected.",
        "sealbell_swarm_nodes_dialling": "Storage nodes to which a connection is being made.",
        "sealbell_swarm_watches": "Subscriptions that are shown to storage nodes.",
        "sealbell_swarm_watches_shown_total": "Subscriptions that storage nodes have taken.",
        "sealbell_swarm_watches_refused_total": "Subscriptions that a storage node has refused.",
        "sealbell_swarm_pushes_received_total": "Notices of storage nodes.",
        "sealbell_swarm_pushes_dropped_total": "Notices that cannot be read, or are not of the node's swarm.",
        "sealbell_swarm_pushes_queued": "Notices that wait to be taken.",
        "sealbell_swarm_notes_total": "What the link to the swarm does.",
        "sealbell_session_notices_total": "What became of each notice that could be read."
    ]
}
