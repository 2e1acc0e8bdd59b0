//! Numbers that spread what checks do.

/// Any number: not for secrets.
pub(super) fn random() -> u32 {
    let mut bytes = [0; 4];
    // Without random bytes the checks are not spread; nothing else depends on it.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    u32::from_le_bytes(bytes)
}
