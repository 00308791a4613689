package import Dialling
package import PushModel
import Synchronization

/// A resolver that gives the same answer for every name, and notes the names.
package final class NamedAddresses: HostResolver {
    private let addresses: [IPAddress]
    private let names = Mutex<[String]>([])

    package var asked: [String] { names.withLock(\.self) }

    package init(_ addresses: [IPAddress]) { self.addresses = addresses }

    /// Invalid addresses are left out.
    package convenience init(_ addresses: String...) { self.init(addresses.compactMap { IPAddress($0) }) }

    package func begin(_ lookUp: LookUp) {
        names.withLock { $0.append(lookUp.host) }
        lookUp.answer(addresses)
    }
}

extension DialOptions {
    /// For a name with these addresses. Attempts follow each other at once, without long waits: an address
    /// that answers late on a loaded machine is then tried beside another, and may still win.
    package static func swift(_ addresses: [IPAddress]) -> DialOptions {
        var options = DialOptions(resolver: NamedAddresses(addresses))
        options.limits.attemptDelay = .milliseconds(20)
        options.limits.silence = .milliseconds(50)
        return options
    }

    /// For a name with these addresses, of which only the first is tried as long as it does not fail.
    package static func patient(_ addresses: [IPAddress]) -> DialOptions {
        var options = DialOptions(resolver: NamedAddresses(addresses))
        options.limits.attemptDelay = .seconds(600)
        options.limits.silence = .seconds(600)
        return options
    }
}

extension IPAddress {
    /// Where a test's good servers listen: 127.0.0.1.
    package static var here: IPAddress { IPAddress(v4: 0x7F00_0001) }
}
