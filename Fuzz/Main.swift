// Where libFuzzer comes in. One program holds all targets; `SEALBELL_FUZZ_TARGET` names the one that runs, so
// that the libraries are instrumented and linked once.

import Glibc

/// What a target does with an input. Returning is all it has to do; a trap, a failed check or a bad access is
/// a find.
typealias Body = @Sendable (UnsafeRawBufferPointer) -> Void

/// Every target by its name, which is also the folder of its inputs below `Fuzz/Inputs`.
let targets: [String: Body] =
    ([wireTargets, webSocketTargets, shareTargets] + protocolTargets)
    .reduce(into: [:]) { $0.merge($1) { first, _ in first } }

private let chosen: Body = {
    guard let name = getenv("SEALBELL_FUZZ_TARGET").map({ String(cString: $0) }), let body = targets[name]
    else {
        let names = targets.keys.sorted().joined(separator: "\n") + "\n"
        _ = names.withCString { write(1, $0, strlen($0)) }
        exit(getenv("SEALBELL_FUZZ_TARGET") == nil ? 0 : 64)
    }
    return body
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func runOne(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    chosen(UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : count))
    return 0
}
