/// The targets of each protocol. This list and the folder of each beside it are all that names a protocol here.
let protocolTargets = [
    zulipTargets, zulipDeviceTargets, zulipKitTargets, marmotTargets, gossipTargets, listeningTargets,
    wakingTargets, nextcloudTargets, nextcloudEndTargets, sessionTargets, sessionEndTargets,
    bencodeTargets, swarmTargets, statusTargets, statusEndTargets, nodeAnswerTargets
]
