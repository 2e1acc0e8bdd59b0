//! Targets of the room `wire`: nothing panics, ranges lie inside the payload, and what was read is written and read back the same.

use crate::wire::{
    AuthMore, AuthSwitch, Capabilities, ChangeUser, ColumnCount, ColumnDef, EofPacket, ErrPacket,
    Execute, Greeting, HEADER_LEN, Login, MAX_PAYLOAD, OkPacket, Packets, PrepareOk, ProxyHeader,
    SslRequest, TextRow, query_text,
};

/// A payload that a client sends to log in.
pub fn wire_login(data: &[u8]) {
    let _ = Login::is_pre_41(data);
    if let Ok(request) = SslRequest::parse(data) {
        let written = payload_of(|out| request.write(out, 1));
        assert_eq!(SslRequest::parse(&written), Ok(request));
    }
    if let Ok(login) = Login::parse(data) {
        let written = payload_of(|out| login.write(out, 1));
        let again = Login::parse(&written).expect("what was written can be read");
        // Writing brings the flags in line with the fields, nothing else.
        let capabilities = again.capabilities;
        assert_eq!(
            again,
            Login {
                capabilities,
                ..login
            }
        );
        assert_eq!(payload_of(|out| again.write(out, 1)), written);
    }
    let Some((caps, command)) = split_caps(data) else {
        return;
    };
    if let Ok(change) = ChangeUser::parse(command, caps) {
        let written = payload_of(|out| change.write(out, 0, caps));
        assert_eq!(ChangeUser::parse(&written, caps), Ok(change));
    }
}

/// The first bytes of a connection that begins with a PROXY header: the verdict on a beginning is never taken back.
pub fn wire_proxy(data: &[u8]) {
    let whole = ProxyHeader::parse(data);
    if let Ok(Some((header, len))) = whole {
        assert!(len <= data.len() && len <= ProxyHeader::LEN_MAX);
        assert_eq!(ProxyHeader::parse(&data[..len]), Ok(Some((header, len))));
        assert_eq!(ProxyHeader::parse(&data[..len - 1]), Ok(None));
    }
    for cut in 0..data.len().min(300) {
        let verdict = ProxyHeader::parse(&data[..cut]);
        assert!(verdict == Ok(None) || verdict == whole);
    }
}

/// Eight bytes of capabilities, then packets of a server, each read as everything that it could be.
pub fn wire_reply(data: &[u8]) {
    let Some((caps, stream)) = split_caps(data) else {
        return;
    };
    for (_, payload) in Packets::new(stream) {
        reply(payload, caps);
    }
}

fn reply(payload: &[u8], caps: Capabilities) {
    if let Ok(greeting) = Greeting::parse(payload) {
        let written = payload_of(|out| greeting.write(out, 0));
        assert_eq!(Greeting::parse(&written), Ok(greeting));
    }
    if let Ok(ok) = OkPacket::parse(payload, caps) {
        let written = payload_of(|out| ok.write(out, 1, caps));
        let again = OkPacket::parse(&written, caps).expect("what was written can be read");
        assert_eq!((again.info, again.state), (ok.info, ok.state));
        assert_eq!(payload_of(|out| again.write(out, 1, caps)), written);
        assert!(ok.changes().count() <= ok.state.len());
    }
    if let Ok(err) = ErrPacket::parse(payload) {
        let written = payload_of(|out| err.write(out, 1, Capabilities::PROTOCOL_41));
        assert_eq!(ErrPacket::parse(&written), Ok(err));
    }
    if let Ok(count) = ColumnCount::parse(payload, caps) {
        let written = payload_of(|out| count.write(out, 1, caps));
        assert_eq!(ColumnCount::parse(&written, caps), Ok(count));
    }
    if let Ok(column) = ColumnDef::parse(payload, caps) {
        let written = payload_of(|out| column.write(out, 1, caps));
        assert_eq!(ColumnDef::parse(&written, caps), Ok(column));
    }
    if let Ok(switch) = AuthSwitch::parse(payload) {
        assert!(switch.nonce().len() <= switch.data.len());
    }
    let _ = AuthMore::parse(payload);
    let _ = EofPacket::parse(payload);
    let _ = PrepareOk::parse(payload);
    assert!(TextRow::new(payload).count() <= payload.len());
}

/// Eight bytes of capabilities, two of a parameter count, then a COM_STMT_EXECUTE or COM_QUERY.
pub fn wire_execute(data: &[u8]) {
    let Some((caps, rest)) = split_caps(data) else {
        return;
    };
    let Some((&n_params, command)) = rest.split_first_chunk() else {
        return;
    };
    if let Ok(text) = query_text(command, caps) {
        assert!(!text.is_empty() || text.start == command.len());
        assert!(command.get(text).is_some());
    }
    if let Ok(execute) = Execute::parse(command, u16::from_le_bytes(n_params), caps) {
        assert!(execute.values_at <= command.len());
        if let Some(types) = execute.types {
            let flag_at = execute.type_flag_at.expect("types come with their flag");
            assert_ne!(command.get(flag_at), Some(&0));
            assert_eq!(types, flag_at + 1..execute.values_at);
        }
    }
}

fn split_caps(data: &[u8]) -> Option<(Capabilities, &[u8])> {
    let (&caps, rest) = data.split_first_chunk()?;
    Some((Capabilities(u64::from_le_bytes(caps)), rest))
}

/// The payload of the one packet that `write` appends. Inputs are far below 16 MiB.
fn payload_of(write: impl FnOnce(&mut Vec<u8>) -> u8) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    assert!(out.len() < HEADER_LEN + MAX_PAYLOAD);
    out.split_off(HEADER_LEN)
}

#[cfg(test)]
mod tests {
    use super::super::replay;
    use super::*;

    #[test]
    fn seeds() {
        replay("wire_login", wire_login);
        replay("wire_proxy", wire_proxy);
        replay("wire_reply", wire_reply);
        replay("wire_execute", wire_execute);
    }
}
