/// A refusal of the simulated FCM (docs/push-services.md §4.4): status, canonical status, message and
/// details.
struct SimulatedFCMError: Error, Equatable {
    enum Detail: Equatable {
        /// `google.firebase.fcm.v1.FcmError`.
        case fcm(String)
        /// `google.rpc.BadRequest` with one violation.
        case badRequest(field: String, description: String)
        /// `google.rpc.ErrorInfo`.
        case info(reason: String)
        /// `google.rpc.QuotaFailure` with one violation.
        case quota(subject: String)
        /// `google.rpc.ErrorInfo` of requests a minute.
        case limit(consumer: String)
    }

    var http: Int
    var status: String
    var message: String
    var details: [Detail]
    /// The name under which a refusal is counted: the FcmError's code, else the canonical status.
    var reason: String {
        for case .fcm(let code) in details { return code }
        return status
    }

    init(_ http: Int, _ status: String, _ message: String, _ details: [Detail] = []) {
        self.http = http
        self.status = status
        self.message = message
        self.details = details
    }

    /// A sender must distinguish this from every other 400, and can do so only by the message (§4.4, first
    /// row).
    static let malformedToken = SimulatedFCMError(
        400, "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token",
        [.fcm("INVALID_ARGUMENT")])
    static let unauthenticated = SimulatedFCMError(
        401, "UNAUTHENTICATED",
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or "
            + "other valid authentication credential.")
    static let expired = SimulatedFCMError(
        401, "UNAUTHENTICATED", "Request had invalid authentication credentials.",
        [.info(reason: "ACCESS_TOKEN_EXPIRED")])
    static let permissionDenied = SimulatedFCMError(
        403, "PERMISSION_DENIED", "Permission 'cloudmessaging.messages.create' denied on resource.")
    static let projectNotFound = SimulatedFCMError(404, "NOT_FOUND", "Requested entity was not found.")
    static let senderMismatch = SimulatedFCMError(
        403, "PERMISSION_DENIED", "SenderId mismatch", [.fcm("SENDER_ID_MISMATCH")])
    static let unregistered = SimulatedFCMError(
        404, "NOT_FOUND", "Requested entity was not found.", [.fcm("UNREGISTERED")])
    static let tooBig = SimulatedFCMError(
        400, "INVALID_ARGUMENT", "Message is too big", [.fcm("INVALID_ARGUMENT")])
    static let notJSON = SimulatedFCMError(
        400, "INVALID_ARGUMENT", "Invalid JSON payload received.",
        [.badRequest(field: "", description: "Invalid JSON payload received.")])
    static let internalError = SimulatedFCMError(
        500, "INTERNAL", "Internal error encountered.", [.fcm("INTERNAL")])
    static let unavailable = SimulatedFCMError(
        503, "UNAVAILABLE", "The service is currently unavailable.", [.fcm("UNAVAILABLE")])

    static func invalid(_ field: String, _ description: String) -> SimulatedFCMError {
        SimulatedFCMError(
            400, "INVALID_ARGUMENT", "Invalid value at '\(field)'",
            [.badRequest(field: field, description: description)])
    }

    /// A device's quota, in FCM's own form.
    static let deviceQuota = SimulatedFCMError(
        429, "RESOURCE_EXHAUSTED", "Device quota exceeded.",
        [.fcm("QUOTA_EXCEEDED"), .quota(subject: "device")])

    /// The project's quota, in the form of the front end that counts its requests.
    static func projectQuota(_ project: String) -> SimulatedFCMError {
        SimulatedFCMError(
            429, "RESOURCE_EXHAUSTED",
            "Quota exceeded for quota metric 'Send requests' and limit 'Send requests per minute' of service "
                + "'fcm.googleapis.com' for consumer 'project:\(project)'.",
            [.fcm("QUOTA_EXCEEDED"), .limit(consumer: "projects/\(project)")])
    }

    var body: [UInt8] {
        var error: [JSONTree.Member] = [
            .init(name: "code", value: .number(http)), .init(name: "message", value: .string(message)),
            .init(name: "status", value: .string(status))
        ]
        if !details.isEmpty { error.append(.init(name: "details", value: .array(details.map(\.tree)))) }
        return JSONTree.object([.init(name: "error", value: .object(error))]).bytes
    }
}

extension SimulatedFCMError.Detail {
    var tree: JSONTree {
        switch self {
        case .fcm(let code):
            ["@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": .string(code)]
        case .badRequest(let field, let description):
            [
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [["field": .string(field), "description": .string(description)]]
            ]
        case .info(let reason):
            [
                "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": .string(reason),
                "domain": "googleapis.com"
            ]
        case .limit(let consumer):
            [
                "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED",
                "domain": "googleapis.com",
                "metadata": [
                    "consumer": .string(consumer), "service": "fcm.googleapis.com",
                    "quota_metric": "fcm.googleapis.com/send_requests",
                    "quota_limit": "SendsPerMinutePerProject", "quota_unit": "1/min/{project}"
                ]
            ]
        case .quota(let subject):
            [
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [["subject": .string(subject), "description": "Quota exceeded."]]
            ]
        }
    }
}
