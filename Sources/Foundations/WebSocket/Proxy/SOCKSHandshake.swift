package import NIOCore
import PushModel

/// The client's side of RFC 1928 and RFC 1929, without a socket: CONNECT, by name where there is one.
package struct SOCKSHandshake {
    package enum Step {
        case wait
        case send(ByteBuffer)
        case established
        case refused
    }

    private enum State { case method, login, answer, done }

    private let address: WebSocketAddress
    private let credentials: SOCKS5Proxy.Credentials?
    private var state = State.method

    package init(to address: WebSocketAddress, credentials: SOCKS5Proxy.Credentials?) {
        self.address = address
        self.credentials = credentials
    }

    private var method: UInt8 { credentials == nil ? 0 : 2 }

    /// Version 5, one method.
    var greeting: ByteBuffer { ByteBuffer(bytes: [5, 1, method]) }

    /// Takes what has come; call again until it waits.
    package mutating func take(_ input: inout ByteBuffer) -> Step {
        switch state {
        case .method:
            guard let answer = input.readBytes(length: 2) else { return .wait }
            guard answer[0] == 5, answer[1] == method else { return .refused }
            guard let credentials else { return request() }
            state = .login
            return .send(login(credentials))
        case .login:
            guard let answer = input.readBytes(length: 2) else { return .wait }
            guard answer[0] == 1, answer[1] == 0 else { return .refused }
            return request()
        case .answer: return answer(&input)
        case .done: return .established
        }
    }

    private func login(_ credentials: SOCKS5Proxy.Credentials) -> ByteBuffer {
        var out = ByteBuffer(bytes: [1])
        for part in [credentials.username, credentials.password] {
            out.writeInteger(UInt8(part.count))
            part.reveal { _ = out.writeBytes($0) }
        }
        return out
    }

    private mutating func request() -> Step {
        state = .answer
        var out = ByteBuffer(bytes: [5, 1, 0])
        if let literal = address.literal {
            if let four = literal.v4 {
                out.writeInteger(UInt8(1))
                out.writeInteger(four)
            } else {
                out.writeInteger(UInt8(4))
                out.writeInteger(literal.high)
                out.writeInteger(literal.low)
            }
        } else {
            // A host is at most 253 bytes, so its length fits.
            out.writeBytes([3, UInt8(address.host.utf8.count)])
            out.writeString(address.host)
        }
        out.writeInteger(UInt16(address.port))
        return .send(out)
    }

    /// Version, reply, reserved, then the address that the proxy bound, which is of no use here.
    private mutating func answer(_ input: inout ByteBuffer) -> Step {
        let start = input.readerIndex
        guard let head = input.getBytes(at: start, length: 2) else { return .wait }
        guard head[0] == 5, head[1] == 0 else { return .refused }
        guard let kind = input.getInteger(at: start + 3, as: UInt8.self) else { return .wait }
        let addressBytes: Int
        switch kind {
        case 1: addressBytes = 4
        case 4: addressBytes = 16
        case 3:
            guard let length = input.getInteger(at: start + 4, as: UInt8.self) else { return .wait }
            addressBytes = 1 + Int(length)
        default: return .refused
        }
        let count = 4 + addressBytes + 2
        guard input.readableBytes >= count else { return .wait }
        input.moveReaderIndex(forwardBy: count)
        state = .done
        return .established
    }
}
