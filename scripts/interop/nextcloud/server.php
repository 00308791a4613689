<?php
// Debian's PHP as a Nextcloud server's half: its openssl, json_encode and http_build_query are what a real server
// uses. It follows the protocol's description alone.
//
// make FILE         writes keys, identities, sealed notifications and a call to a proxy
// check FILE OURS   reads what our device and our origin made of them; prints one line, or ends with 1

const PADDINGS = ['pkcs1v15' => OPENSSL_PKCS1_PADDING, 'oaep' => OPENSSL_PKCS1_OAEP_PADDING];

function told($what) { fwrite(STDERR, "php: $what\n"); exit(1); }
function demand($holds, $what) { if (!$holds) { told($what); } }

function notifications(): array {
    $long = str_repeat('Grüße aus Köln 🎉/漢字 ', 12);
    $found = [];
    foreach (['', 'see you at nine', "\"quoted\" \\ a/b <tag> & \u{7F}\n\t\u{1}", str_repeat('x', 400), $long,
              str_repeat('/', 99), "\u{2028}\u{FFFF}👩‍👩‍👧"] as $at => $subject) {
        $found[] = ['nid' => $at + 1, 'app' => 'spreed', 'subject' => $subject, 'type' => 'chat', 'id' => 't0k3n'];
    }
    $found[] = ['nid' => 4294967295, 'app' => 'files_sharing', 'subject' => $long, 'type' => 'remote_share',
                'id' => 'https://cloud.example.org/a b'];
    return $found;
}

// Cut to 200 bytes, the two quotes of the subject counted twice; five characters at a time.
function plaintext(array $notification): string {
    $subject = $notification['subject'];
    $notification['subject'] = '';
    $room = max(0, 200 - strlen(json_encode($notification)) - 2);
    $letters = preg_split('//u', $subject, -1, PREG_SPLIT_NO_EMPTY);
    $kept = array_slice($letters, 0, $room);
    while (strlen(json_encode(implode('', $kept))) - 2 > $room) {
        $kept = array_slice($kept, 0, max(0, count($kept) - 5));
    }
    $notification['subject'] = implode('', $kept) . (count($kept) < count($letters) ? '…' : '');
    return json_encode($notification);
}

function make(string $file): void {
    $user = openssl_pkey_new(['private_key_bits' => 2048, 'private_key_type' => OPENSSL_KEYTYPE_RSA]);
    $device = openssl_pkey_new(['private_key_bits' => 2048, 'private_key_type' => OPENSSL_KEYTYPE_RSA]);
    openssl_pkey_export($user, $user_pem);
    openssl_pkey_export($device, $device_pem);
    $identities = [];
    foreach ([['alice@cloud.example.org', 41], ['zoë@cloud.example.org/nextcloud', 1234567],
              ['a"b\\@http://127.0.0.1:8080', 3], ['漢@corp@cloud.example.org', 9]] as $identity) {
        $preimage = json_encode($identity);
        openssl_sign($preimage, $signature, $user, OPENSSL_ALGO_SHA512);
        $identities[] = ['cloud_id' => $identity[0], 'token_id' => $identity[1],
                         'identifier' => base64_encode(hash('sha512', $preimage, true)),
                         'signature' => base64_encode($signature)];
    }
    $sealed = [];
    $entries = [];
    foreach (notifications() as $notification) {
        foreach (PADDINGS as $name => $padding) {
            $plain = plaintext($notification);
            demand(openssl_public_encrypt($plain, $subject, openssl_pkey_get_details($device)['key'], $padding),
                   'encryption');
            openssl_sign($subject, $signature, $user, OPENSSL_ALGO_SHA512);
            $row = ['subject' => base64_encode($subject), 'signature' => base64_encode($signature)];
            $sealed[] = $row + ['notification' => $notification, 'plaintext' => $plain];
            $entries[] = json_encode(['deviceIdentifier' => $identities[0]['identifier'],
                                      'pushTokenHash' => hash('sha512', 'token')] + $row
                                     + ['priority' => 'high', 'type' => 'alert']);
        }
    }
    file_put_contents($file, json_encode([
        'user_private' => $user_pem, 'user_public' => openssl_pkey_get_details($user)['key'],
        'device_private' => $device_pem, 'device_public' => openssl_pkey_get_details($device)['key'],
        'identities' => $identities, 'sealed' => $sealed,
        'body' => http_build_query(['notifications' => $entries])]));
}

function check(string $file, string $ours): void {
    $made = json_decode(file_get_contents($file), true);
    $got = json_decode(file_get_contents($ours), true);
    // What our device tells the server.
    parse_str($got['at_server'], $form);
    demand(preg_match('/^[a-f0-9]{128}$/', $form['pushTokenHash']) === 1, 'the hash of the token');
    demand(hash('sha512', $got['token']) === $form['pushTokenHash'], 'the hash is of another text');
    demand($form['devicePublicKey'] === $made['device_public'], 'the device key is not as OpenSSL writes it');
    demand(filter_var($form['proxyServer'], FILTER_VALIDATE_URL) !== false, 'the proxy URL');
    // What it tells the proxy.
    parse_str($got['at_proxy'], $form);
    $preimage = json_encode(['alice@cloud.example.org', 41]);
    demand(base64_encode(hash('sha512', $preimage, true)) === $form['deviceIdentifier'], 'the identifier');
    demand(openssl_verify($preimage, base64_decode($form['deviceIdentifierSignature'], true),
                          $form['userPublicKey'], OPENSSL_ALGO_SHA512) === 1, 'the signature of the identifier');
    demand($form['pushToken'] === $got['token'], 'the token');
    // What our origin sends.
    $opened = 0;
    foreach ($got['calls'] as $call) {
        parse_str($call['body'], $form);
        demand(http_build_query($form) === $call['body'], 'the form is not as http_build_query writes it');
        demand(count($form['notifications']) === count($made['sealed']) / 2, 'the number of entries');
        foreach ($form['notifications'] as $at => $text) {
            $entry = json_decode($text, true);
            demand(json_encode($entry) === $text, 'an entry is not as json_encode writes it');
            $subject = base64_decode($entry['subject'], true);
            demand(openssl_verify($subject, base64_decode($entry['signature'], true), $made['user_public'],
                                  OPENSSL_ALGO_SHA512) === 1, 'a signature');
            demand(openssl_private_decrypt($subject, $plain, $made['device_private'], PADDINGS[$call['padding']]),
                   'a subject does not open');
            demand($plain === $made['sealed'][2 * $at]['plaintext'], "plaintext $at is another: $plain");
            $opened++;
        }
    }
    echo "$opened subjects opened\n";
}

match ($argv[1] ?? '') {
    'make' => make($argv[2]),
    'check' => check($argv[2], $argv[3]),
    default => told('make FILE, or check FILE OURS'),
};
