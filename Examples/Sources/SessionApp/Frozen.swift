import SessionPush

/// A phone that was kept, and a push for it: both made once, because no library of an app's seals for a
/// relay.
enum Frozen {
    /// What a device had kept before any account was watched.
    static let kept = Secret(
        [
            #"[["sealbell session device","1","#,
            #""226937e34539ce443601e5f2b6e58269d12d561de30b82d489ee8aed75a8c96d"],"#,
            #"["00000000000000000000000000000000","no",""],"#,
            #"["404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"],[],[]]"#
        ].joined().utf8)

    /// Of the user's account: Ed25519, 32 bytes.
    static let seed = Secret(0..<32)

    static let text = "what the sender has encrypted"

    /// As Google hands it over.
    static let push = [
        "spns": "1",
        "enc_payload": payload.joined()
    ]

    private static let payload = [
        "YGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3+U/EVklpwWvfiRVKb/bq281DmY7JWd5z1F6d/6NlPjaOP2ZMZ4ocWEGW9+OQa2ss",
        "L5z5bAbMCeg007S6Gny+CbBPhQ9YeTwzBivr2fpbQSNbm7d26q7dAJA+Twa6Yu5dfNLMxyV48FB1J+CDIdxf805naTMcDru5",
        "6a9nH+iyS3wpTuojE44TTz9pL7fTq59heo0gtnLxgSAMIeiDnc4rw5rcPNMtUxJlEq2glmvFDtfKCthBazEAdGJTBjDwQ5xJ",
        "4MQMJ/rFuLjR17a0SJ9PsKXVdpjmL+FTiZHNWD1XaK39leb2eXCQBIabzixFnlfRod8GYdI8biLOdApZ3rUwMmvwcgX49dPS",
        "ihqTGl8r9YQ="
    ]
}
