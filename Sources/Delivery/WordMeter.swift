package import CoreMetrics
package import PushModel
import Synchronization

/// One family of counters of one instance, told apart by a word. The words are static text of our own or of
/// closed lists, so there are few.
package final class WordMeter: Sendable {
    private let family: String
    private let label: String
    private let instance: ConfiguredName
    private let metrics: any MetricsFactory
    /// Each is made once: naming a series costs more than counting in it, and each call notes something.
    private let counters: Mutex<[String: Counter]>

    /// - Parameters:
    ///   - label: of the word.
    ///   - words: those that are shown before they are counted first.
    package init(
        _ family: String, by label: String, of instance: ConfiguredName, from words: [String] = [],
        _ metrics: any MetricsFactory
    ) {
        (self.family, self.label, self.instance, self.metrics) = (family, label, instance, metrics)
        let counters = words.map { word in
            (word, metrics.counter(family, of: instance, by: [(label, word)]))
        }
        self.counters = Mutex(Dictionary(counters, uniquingKeysWith: { first, _ in first }))
    }

    /// What the roles of an instance note.
    package static func notes(of instance: ConfiguredName, _ metrics: any MetricsFactory) -> WordMeter {
        WordMeter("sealbell_notes_total", by: "note", of: instance, metrics)
    }

    package func count(_ note: NoteCode, _ times: Int = 1) { count(note.text, times) }

    package func count(_ word: String, _ times: Int = 1) {
        let counter = counters.withLock { counters in
            if let known = counters[word] { return known }
            let counter = metrics.counter(family, of: instance, by: [(label, word)])
            counters[word] = counter
            return counter
        }
        counter.increment(by: times)
    }
}

extension MetricsFactory {
    package func meter(_ name: String, of instance: ConfiguredName) -> Meter {
        Meter(label: name, dimensions: [("instance", instance.text)], factory: self)
    }

    /// - Parameter words: further labels, each with a word.
    package func counter(
        _ name: String, of instance: ConfiguredName, by words: [(String, String)] = []
    ) -> Counter {
        Counter(label: name, dimensions: [("instance", instance.text)] + words, factory: self)
    }
}
