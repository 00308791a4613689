import HTTPIngress
import WireFormats
import ZulipPush

/// What the door answers in place of a result, in Zulip's envelope.
struct DoorRefusal: Error {
    let status: Int
    let code: String
    let sentence: String
    var body: [UInt8]?
    var headers: [(name: StaticString, value: String)] = []

    init(_ status: Int, _ code: String, _ sentence: String) {
        self.status = status
        self.code = code
        self.sentence = sentence
    }

    init(_ refusal: OriginRefusal) {
        self.init(refusal.status, refusal.code, refusal.sentence)
        body = refusal.body()
    }

    init(_ refusal: ZulipUsersRefusal) {
        switch refusal {
        case .refused(let refusal): self.init(refusal)
        case .origin(let error):
            switch error.code {
            case .rateLimited: self = .rateLimited
            case .tooMuchContent: self.init(400, "BAD_REQUEST", error.sentence)
            default: self = .overloaded
            }
        }
    }

    static let noCredentials = DoorRefusal(
        401, "UNAUTHORIZED", "Not logged in: API authentication or user session required"
    ).asking
    static let malformedCredentials = DoorRefusal(
        401, "UNAUTHORIZED", "Invalid authorization header for basic auth"
    ).asking
    /// An unknown user and a wrong key get the same answer.
    static let wrongCredentials = DoorRefusal(401, "INVALID_API_KEY", "Invalid API key").asking
    static let unknownPath = DoorRefusal(404, "BAD_REQUEST", "There is nothing at this path.")
    static let noChallenge = DoorRefusal(
        400, "REMOTE_SERVER_VERIFICATION_SECRET_NOT_PREPARED", "Verification secret not prepared")
    static let overloaded = DoorRefusal(503, "INTERNAL_SERVER_ERROR", "Try again later.").later
    static let rateLimited = DoorRefusal(429, "RATE_LIMIT_HIT", "API usage exceeded rate limit").later

    static func wrongMethod(_ methods: String) -> DoorRefusal {
        var refusal = DoorRefusal(405, "", "Method Not Allowed")
        // As Zulip's framework says it: without a code.
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("result", "error")
        writer.member("msg", refusal.sentence)
        writer.beginArray("allowed_methods")
        for method in methods.split(separator: ", ") { writer.string(String(method)) }
        writer.endArray()
        writer.endObject()
        refusal.body = writer.bytes
        refusal.headers = [(name: "allow", value: methods)]
        return refusal
    }

    static func missing(_ parameter: String) -> DoorRefusal {
        DoorRefusal(400, "REQUEST_VARIABLE_MISSING", "Missing '\(parameter)' argument")
    }

    private var asking: DoorRefusal {
        var refusal = self
        refusal.headers = [(name: "www-authenticate", value: "Basic realm=\"zulip\"")]
        return refusal
    }

    private var later: DoorRefusal {
        var refusal = self
        refusal.headers = [(name: "retry-after", value: "1")]
        return refusal
    }

    var outbound: HTTPOutbound { HTTPOutbound(status, .json, body ?? envelope, headers: headers) }

    private var envelope: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        for (name, value) in [("result", "error"), ("msg", sentence), ("code", code)] {
            writer.key("\(name)")
            writer.string(value)
        }
        writer.endObject()
        return writer.bytes
    }
}
