//! A password, typed without echo, or the first line of standard input where nobody types. Never from the command line, where
//! every process of the machine could read it.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::password::PASSWORD_BYTES_MAX;

/// Shorter ones are guessed.
pub const PASSWORD_BYTES_MIN: usize = 12;

/// A new password; typed twice if somebody types.
pub fn new_password(name: &str) -> io::Result<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return check(line(&mut stdin.lock())?);
    }
    let silence = Silence::begin()?;
    let first = check(ask(&format!("Password for {name}: "))?)?;
    let second = ask("Again: ")?;
    drop(silence);
    if first == second { Ok(first) } else { Err(io::Error::other("the two are not the same")) }
}

fn ask(words: &str) -> io::Result<String> {
    let mut err = io::stderr();
    write!(err, "{words}")?;
    err.flush()?;
    let typed = line(&mut io::stdin().lock());
    writeln!(err)?;
    typed
}

fn line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    // One more than is allowed, and the line's end.
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

/// The terminal shows nothing of what is typed until this is dropped.
struct Silence {
    before: Termios,
}

impl Silence {
    fn begin() -> io::Result<Silence> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Silence { before })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // If the terminal has gone there is nobody to be seen.
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
    fn a_password_is_neither_short_nor_endless() {
        for (length, good) in [(0, false), (11, false), (12, true), (1_024, true), (1_025, false)] {
            assert_eq!(check("x".repeat(length)).is_ok(), good, "{length}");
        }
    }
}
