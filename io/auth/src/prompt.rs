//! Reads a password: typed without echo, or the first line of standard input if that is no
//! terminal. Never from the command line, which every process of the machine can read.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::password::PASSWORD_BYTES_MAX;

/// Minimum length of a password in bytes; shorter ones can be guessed.
pub(crate) const PASSWORD_BYTES_MIN: usize = 12;

/// Reads a new password; on a terminal it has to be typed twice.
pub(crate) fn new_password(name: &str) -> io::Result<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return check(line(&mut stdin.lock())?);
    }
    let echo_off = EchoOff::begin()?;
    let first = check(ask(&format!("Password for {name}: "))?)?;
    let second = ask("Again: ")?;
    drop(echo_off);
    if first == second { Ok(first) } else { Err(io::Error::other("the two are not the same")) }
}

fn ask(text: &str) -> io::Result<String> {
    let mut err = io::stderr();
    write!(err, "{text}")?;
    err.flush()?;
    let typed = line(&mut io::stdin().lock());
    writeln!(err)?;
    typed
}

fn line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    // One byte more than allowed, and the line end.
    input.take(PASSWORD_BYTES_MAX as u64 + 3).read_line(&mut line)?;
    let text = line.strip_suffix('\n').unwrap_or(&line);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_string())
}

fn check(password: String) -> io::Result<String> {
    match password.len() {
        PASSWORD_BYTES_MIN..=PASSWORD_BYTES_MAX => Ok(password),
        length => Err(io::Error::other(format!(
            "a password has {PASSWORD_BYTES_MIN} to {PASSWORD_BYTES_MAX} bytes, not {length}"
        ))),
    }
}

/// Disables the echo of the terminal until it is dropped.
struct EchoOff {
    before: Termios,
}

impl EchoOff {
    fn begin() -> io::Result<EchoOff> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(EchoOff { before })
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        // If the terminal is gone, there is no echo to restore.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_password_with_all_its_spaces() {
        let read = |text: &str| line(&mut text.as_bytes()).unwrap();
        assert_eq!(read(" a b \nc"), " a b ");
        assert_eq!(read("a\r\n"), "a");
        assert_eq!(read("a"), "a");
        assert_eq!(read(""), "");
        assert_eq!(read(&"x".repeat(5_000)).len(), PASSWORD_BYTES_MAX + 3);
    }

    #[test]
    fn the_length_of_a_password_is_bounded() {
        for (length, good) in [(0, false), (11, false), (12, true), (1_024, true), (1_025, false)] {
            assert_eq!(check("x".repeat(length)).is_ok(), good, "{length}");
        }
    }
}
