//! Functions that statements of the model call.

use crate::engine::Execution;
use crate::statement::Value;

impl Execution<'_> {
    pub fn call(&mut self, name: &str, arguments: &[Value]) -> Result<String, u16> {
        let argument = match arguments.first() {
            Some(value) => self.value(value)?,
            None => String::new(),
        };
        Ok(match name {
            // Atlas's answer in the place of a question.
            "if" => match arguments.get(1) {
                Some(value) => self.value(value)?,
                None => return Err(1064),
            },
            "stored" => {
                let name = format!("of_{}", self.tag % 10);
                let user = name.clone();
                self.memory
                    .variables
                    .insert("lc_time_names".to_owned(), name);
                self.memory.user_variables.insert("stored".to_owned(), user);
                "1".to_owned()
            }
            "last_insert_id" => self.memory.insert_id.to_string(),
            "found_rows" => self.before.rows.to_string(),
            "row_count" => self.before.affected.to_string(),
            "get_lock" => {
                self.memory.locks.insert(argument);
                "1".to_owned()
            }
            "release_lock" => {
                let held = self.memory.locks.remove(&argument);
                if held { "1" } else { "NULL" }.to_owned()
            }
            "database" => self
                .memory
                .schema
                .clone()
                .unwrap_or_else(|| "NULL".to_owned()),
            _ => return Err(1305),
        })
    }
}
