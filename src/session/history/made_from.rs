//! What else of a session's state went into a value without being named in it: the time zone into a FROM_UNIXTIME(), the collation
//! into a text. Said again elsewhere, such a value has to come behind the same settings.

use super::sets_character_set;

/// See the module's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(in crate::session) enum MadeFrom {
    /// Nothing: a number, NULL, the word or text of a setting.
    #[default]
    Itself,
    /// A text in a user variable has the collation of the moment.
    CharacterSets,
    /// An expression: time zone, locale, sql_mode and more may have a part in it.
    Settings,
}

impl MadeFrom {
    /// Of the value of a setting, as written.
    pub(in crate::session) fn of_setting(value: &[u8]) -> Self {
        if is_constant(value) || is_text(value) {
            Self::Itself
        } else {
            Self::Settings
        }
    }

    /// Of the value of a user variable, as written.
    pub(in crate::session) fn of_user_variable(value: &[u8]) -> Self {
        if is_constant(value) {
            Self::Itself
        } else if is_text(value) {
            Self::CharacterSets
        } else {
            Self::Settings
        }
    }

    /// Whether state of this key may have had a part in it. User variables, the schema and how transactions are have one by name only.
    pub(super) fn hangs_on(self, key: &[u8]) -> bool {
        match self {
            Self::Itself => false,
            Self::CharacterSets => sets_character_set(key),
            Self::Settings => !key.starts_with(b"@") && !matches!(key, b"schema" | b"transaction"),
        }
    }
}

/// A word, or whole and decimal numbers with signs between them. (Not divided: how many digits that has is a setting.)
fn is_constant(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let is_word = value
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let is_sum = value
        .iter()
        .all(|b| b.is_ascii_digit() || b".+-*() ".contains(b));
    let is_bytes = match value {
        [b'x' | b'X' | b'b' | b'B', b'\'', inner @ .., b'\''] => {
            inner.iter().all(u8::is_ascii_hexdigit)
        }
        _ => false,
    };
    !value.is_empty() && (is_word || is_sum || is_bytes)
}

/// One literal between quotes, under either meaning of a backslash.
fn is_text(value: &[u8]) -> bool {
    let [quote @ (b'\'' | b'"'), inner @ ..] = value.trim_ascii() else {
        return false;
    };
    let mut bytes = inner.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => _ = bytes.next(),
            _ if byte != quote => {}
            _ if bytes.peek() == Some(&quote) => _ = bytes.next(),
            _ => return bytes.next().is_none(),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_made_from_nothing() {
        for value in [
            "1",
            "-1",
            "+1.50",
            " 0xff ",
            "x'41'",
            "b'01'",
            "NULL",
            "DEFAULT",
            "TRUE",
            "1e3",
            "60*60*(8-1)",
            "utf8mb4",
        ] {
            let value = value.as_bytes();
            assert_eq!(MadeFrom::of_setting(value), MadeFrom::Itself);
            assert_eq!(MadeFrom::of_user_variable(value), MadeFrom::Itself);
        }
    }

    #[test]
    fn a_text_has_a_collation_in_a_user_variable_only() {
        for value in ["'a'", "\"a\"", "'it''s'", "'a\\'b'", "''", "'='"] {
            let value = value.as_bytes();
            assert_eq!(MadeFrom::of_setting(value), MadeFrom::Itself);
            assert_eq!(MadeFrom::of_user_variable(value), MadeFrom::CharacterSets);
        }
        assert!(MadeFrom::CharacterSets.hangs_on(b"names"));
        assert!(MadeFrom::CharacterSets.hangs_on(b"collation_connection"));
        assert!(!MadeFrom::CharacterSets.hangs_on(b"time_zone"));
    }

    #[test]
    fn anything_else_may_be_made_from_any_setting() {
        for value in [
            "1/3",
            "'a'='b'",
            "'a' 'b'",
            "FROM_UNIXTIME(0)",
            "NOT 1",
            "_utf8mb4'a'",
            "'",
            "'a",
            "",
            "'\\'",
            "'a\\' = 'b'",
        ] {
            let value = value.as_bytes();
            assert_eq!(MadeFrom::of_setting(value), MadeFrom::Settings, "{value:?}");
            assert_eq!(MadeFrom::of_user_variable(value), MadeFrom::Settings);
        }
        assert!(MadeFrom::Settings.hangs_on(b"sql_mode"));
        assert!(!MadeFrom::Settings.hangs_on(b"@a"));
        assert!(!MadeFrom::Settings.hangs_on(b"schema"));
    }
}
