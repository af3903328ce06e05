//! The FIX codec beside another one.
use fefix as _;
