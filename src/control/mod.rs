//! Control.

mod load;

pub use load::{LoadError, load_config, load_config_alone};
