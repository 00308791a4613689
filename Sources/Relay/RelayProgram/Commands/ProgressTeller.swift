import PushModel

/// Tells a person how far long work is: on a terminal in one line that counts up, elsewhere in lines of their
/// own or not at all. A terminal's control characters go to terminals alone.
final class ProgressTeller {
    enum Elsewhere { case lines, nothing }

    /// Between two lines, unless another stage begins.
    private static let every = Duration.seconds(1)

    private let shell: Shell
    private let show: (String) -> Void
    private var stage: String?
    private var next: ContinuousClock.Instant
    private var last = ""

    /// - Parameter elsewhere: what is told where there is no terminal.
    init(_ shell: Shell, elsewhere: Elsewhere) {
        self.shell = shell
        next = shell.world.instant()
        show = shell.progress ?? (elsewhere == .lines ? shell.err : { _ in })
    }

    func tell(_ work: WorkDone) { tell(work.line, stage: work.words) }

    /// - Parameter stage: what is being done; a line of another stage is shown at once.
    func tell(_ line: String, stage: String) {
        let now = shell.world.instant()
        guard stage != self.stage || now >= next, line != last else { return }
        (self.stage, next, last) = (stage, now + Self.every, line)
        show(line)
    }

    /// Leaves nothing of it on a terminal.
    func end() { shell.progress?("") }
}
