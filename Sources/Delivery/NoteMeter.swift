package import CoreMetrics
package import PushModel

/// Counts what the roles of one instance note. The codes are static text of our own.
package struct NoteMeter: Sendable {
    private let instance: ConfiguredName
    private let metrics: any MetricsFactory

    package init(_ instance: ConfiguredName, _ metrics: any MetricsFactory) {
        self.instance = instance
        self.metrics = metrics
    }

    package func count(_ note: NoteCode, _ times: Int = 1) {
        Counter(
            label: "sealbell_notes_total", dimensions: [("instance", instance.text), ("note", note.text)],
            factory: metrics
        ).increment(by: times)
    }
}
