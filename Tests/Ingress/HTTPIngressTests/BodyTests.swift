import HTTPIngress
import NIOCore
import Testing

@Suite("The body of a request")
struct BodyTests {
    @Test("It is there until somebody lets go of it, and then for nobody")
    func forgotten() {
        let inbound = HTTPInbound(.post, path: "/", body: ByteBuffer(string: "hello"))
        let copy = inbound
        #expect(copy.withBody { $0.elementsEqual("hello".utf8) })
        #expect(inbound.body == ByteBuffer(string: "hello"))
        inbound.forgetBody()
        #expect(copy.body.readableBytes == 0)
        #expect(inbound.withBody { $0.isEmpty })
    }

    @Test("A request without one has an empty one")
    func none() {
        let inbound = HTTPInbound(.get, path: "/")
        #expect(inbound.body.readableBytes == 0)
        inbound.forgetBody()
        #expect(inbound.withBody { $0.isEmpty })
    }
}
