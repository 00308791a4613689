public import PushModel

/// What this protocol's roles refuse, and why. The protocol is silent: no code ever reaches a peer.
public typealias MarmotError = CodedError<MarmotErrorCode>

/// The codes of ``MarmotError``, frozen: docs/errors.md has a row for each.
public enum MarmotErrorCode: String, AdvisingErrorCode {
    /// What a relay or a client says has a wrong form. ``sentence`` tells each.
    case malformedMessage, unknownMessage, malformedEvent, malformedFilter, malformedRelayList
    /// What a relay or a client says is longer than ``MarmotLimits`` has it.
    case tooLarge
    /// Of a wrap: kind, recipient, signature, or what is inside.
    case wrongKind, wrongRecipient, badSignature, doesNotOpen, malformedInside, authorMismatch, badRumorID
    /// Of a trigger: its format, or its content.
    case unknownVersion, formatSwitchedOff, malformedTrigger
    /// Of what was seen before, or comes too often or too late.
    case repeated, overBudget, tooOld
    /// Of an encrypted token: key, content, or platform.
    case tokenDoesNotOpen, malformedToken, unknownPlatform
    /// Of gossip: its form, or who sent it.
    case malformedGossip, senderMismatch
    /// Of what we are asked to make: too much, a bad key, or a token of the other platform.
    case tooMuchContent, malformedKey, foreignPushService
    /// Of what a device kept: not written by this library.
    case malformedRow

    public var blame: Blame {
        switch self {
        case .tooMuchContent, .malformedKey, .foreignPushService, .malformedRow: .ourselves
        default: .peer
        }
    }

    public var retry: RetryAdvice { self == .overBudget ? .later : .never }

    public var sentence: String {
        switch self {
        case .malformedMessage: "The relay or client sent something that is no Nostr message."
        case .unknownMessage: "The message is of a kind that this program does not know."
        case .malformedEvent: "The event has a wrong form."
        case .malformedFilter: "The filter has a wrong form."
        case .malformedRelayList: "The event is no relay list."
        case .tooLarge: "The message is larger than allowed."
        case .wrongKind: "The event is of another kind than expected."
        case .wrongRecipient: "The wrap is not addressed to a key of this server."
        case .badSignature: "The event's id or signature does not fit."
        case .doesNotOpen: "The content does not open with the key."
        case .malformedInside: "What was inside the wrap has a wrong form."
        case .authorMismatch: "The rumor names another author than its seal."
        case .badRumorID: "The rumor's id does not fit."
        case .unknownVersion: "The trigger's tags name no format of Marmot."
        case .formatSwitchedOff: "The trigger is in a format that is switched off here."
        case .malformedTrigger: "The trigger's content has a wrong form."
        case .repeated: "The wrap, or the trigger in it, was taken before."
        case .overBudget: "A budget is spent for the moment; the same trigger may come again."
        case .tooOld: "The wrap waited on a relay for longer than this server looks back."
        case .tokenDoesNotOpen: "The encrypted token does not open with the key."
        case .malformedToken: "The encrypted token holds no device token."
        case .unknownPlatform: "The encrypted token is for an unknown push service."
        case .malformedGossip: "The event about tokens has a wrong form."
        case .senderMismatch: "The event names another author than the member who sent it."
        case .foreignPushService: "A device registers tokens of its own platform's push service alone."
        case .tooMuchContent: "The content is larger than the format takes."
        case .malformedKey: "The key or nonce has a wrong form."
        case .malformedRow: "Kept state of a group was not written by this library."
        }
    }
}
