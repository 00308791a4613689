package import CoreMetrics
package import PushModel
import Synchronization

/// Counts what the roles of one instance note. The codes are static text of our own, so there are few.
package final class NoteMeter: Sendable {
    private let instance: ConfiguredName
    private let metrics: any MetricsFactory
    /// Each is made once: naming a series costs more than counting in it, and each call notes something.
    private let counters = Mutex<[NoteCode: Counter]>([:])

    package init(_ instance: ConfiguredName, _ metrics: any MetricsFactory) {
        self.instance = instance
        self.metrics = metrics
    }

    package func count(_ note: NoteCode, _ times: Int = 1) {
        let counter = counters.withLock { counters in
            if let known = counters[note] { return known }
            let counter = Counter(
                label: "sealbell_notes_total",
                dimensions: [("instance", instance.text), ("note", note.text)], factory: metrics)
            counters[note] = counter
            return counter
        }
        counter.increment(by: times)
    }
}
