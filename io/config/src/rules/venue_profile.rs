//! Rules of the dialect of a FIX venue.

use pitlane_protocols::fix::venue::profile::EXTRA_FIELDS_MAX;

use super::RuleCheck;
use crate::adapter::AdapterDefaults;

impl RuleCheck<'_> {
    pub(super) fn venue_profile(&mut self, at: usize, usual: &AdapterDefaults) {
        let key = |name: &str| format!("adapter.{at}.{name}");
        let (profile, secrets) = (&usual.profile, &usual.key);
        if usual.tls && usual.tls_ca.is_none() {
            self.fault(&key("tls_ca"), "tls needs the certificates that the venue's must come from");
        }
        if usual.username.is_none() && usual.password.is_some() {
            self.fault(&key("username"), "a password needs a username");
        }
        if usual.username.is_some() && usual.password.is_none() && !profile.is_signed() {
            self.fault(&key("username"), "username and password belong together, unless the Logon is signed");
        }
        if profile.is_signed() && !secrets.is_given() {
            self.fault(&key("secret"), "either secret or secret_file is needed for logon_signed_tags");
        }
        if let Some(path) = &secrets.secret_file {
            self.file(&key("secret_file"), path);
        }
        for (name, fields) in
            [("logon_fields", &profile.logon_fields), ("order_fields", &profile.order_fields)]
        {
            if fields.len() > EXTRA_FIELDS_MAX {
                self.fault(
                    &key(name),
                    format!("it may have {EXTRA_FIELDS_MAX} fields, not {}", fields.len()),
                );
            }
        }
    }
}
