//! The sets of capabilities that a client may ask for.

use ::atlas::wire::Capabilities;

use crate::common::{Login, Wire};
use crate::stage::Stage;

/// No client of today asks for less.
const BARE: Capabilities = Capabilities(
    Capabilities::LONG_PASSWORD.0
        | Capabilities::LONG_FLAG.0
        | Capabilities::PROTOCOL_41.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::PLUGIN_AUTH.0,
);

/// What would change the stream beneath the packets, or asks for a log-in of another kind: not offered by Atlas, or tested elsewhere.
const OTHER_STREAM: Capabilities = Capabilities(
    Capabilities::COMPRESS.0
        | Capabilities::SSL.0
        | Capabilities::ZSTD_COMPRESSION_ALGORITHM.0
        | Capabilities::MULTI_FACTOR_AUTHENTICATION.0
        | Capabilities::CONNECT_WITH_DB.0,
);

/// The bare set, the bare set with each single ability of the server, and all that the server has.
pub(crate) fn sets(stage: &Stage) -> Vec<(String, Login)> {
    let greeted = Wire::greet(stage.atlas.address()).expect("a greeting");
    let offered = greeted.offered.without(OTHER_STREAM);
    let login = |capabilities| {
        let mut login = Login::app();
        login.capabilities = capabilities;
        login
    };
    let mut sets = vec![("bare".to_owned(), login(BARE))];
    for bit in 0..64 {
        let one = Capabilities(1 << bit);
        if offered.contains(one) && !BARE.contains(one) {
            sets.push((format!("bit {bit}"), login(BARE | one)));
        }
    }
    let extended = offered.0 >> 32 != 0;
    let all = offered.without(if extended {
        Capabilities::LONG_PASSWORD
    } else {
        // MySQL adds a warning to every statement for this one.
        Capabilities::NO_SCHEMA
    });
    sets.push(("all".to_owned(), login(all)));
    sets.push((
        "all but DEPRECATE_EOF".to_owned(),
        login(all.without(Capabilities::DEPRECATE_EOF)),
    ));
    sets
}
