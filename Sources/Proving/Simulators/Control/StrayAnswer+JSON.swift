import PushModel

extension JSONTree {
    /// A knob of stray answers: an array, or `null` for none.
    func strayAnswers() throws(SimulatorError) -> [StrayAnswer] {
        if self == .null { return [] }
        let items = try known(items)
        guard items.count <= StrayAnswers.limit else { throw SimulatorError(.knobNotKnown) }
        var strays: [StrayAnswer] = []
        for item in items { strays.append(try StrayAnswer(item)) }
        return strays
    }
}

extension StrayAnswer {
    /// `{"status": n, "body", "contentType", "retryAfter", "address", "on": {"next": n} | {"every": n} |
    /// {"share": p}}`; `{"page": n, …}` instead of status and body is an HTML page.
    fileprivate init(_ tree: JSONTree) throws(SimulatorError) {
        let names = ["status", "page", "body", "contentType", "retryAfter", "address", "on"]
        for member in try tree.known(tree.members) where !names.contains(member.name) {
            throw SimulatorError(.knobNotKnown)
        }
        let choice = try Choice(try tree.known(tree["on"]))
        let status = Int(try tree.known(tree["page"] ?? tree["status"]).setting())
        guard (200...599).contains(status) else { throw SimulatorError(.knobNotKnown) }
        self = .page(status, on: choice)
        if tree["page"] == nil {
            body = tree["body"]?.text ?? ""
            contentType = nil
        }
        if let type = tree["contentType"]?.text { contentType = type }
        retryAfter = tree["retryAfter"]?.text
        address = tree["address"]?.text
    }
}

extension StrayAnswer.Choice {
    fileprivate init(_ tree: JSONTree) throws(SimulatorError) {
        if let count = tree["next"] {
            self = .next(Int(try count.setting()))
        } else if let count = tree["every"] {
            self = .every(Int(try count.setting()))
        } else {
            self = .share(try tree.known(tree["share"]).share())
        }
    }
}
