//! Several processes: the connection to the message broker, the standby server, and strategies in
//! processes of their own.

pub mod frames;
pub mod nats;
pub mod standby;
pub mod strategy_process;
