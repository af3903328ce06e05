//! Rules of venues of the type BINANCE-SPOT.

use super::RuleCheck;
use crate::adapter::AdapterDefaults;
use crate::venue_url::VenueUrl;

/// Domain of the venue's addresses without real money.
const TESTNET_DOMAIN: &str = "testnet.binance.vision";

impl RuleCheck<'_> {
    pub(super) fn binance(&mut self, at: usize, usual: &AdapterDefaults) {
        let key = |name: &str| format!("adapter.{at}.{name}");
        let settings = &usual.binance;
        if settings.is_production && !settings.i_understand {
            let text = "production trades with real money: set i_understand = true if you want that";
            self.fault(&key("environment"), text);
        }
        if settings.api_key.is_none() {
            self.fault(&key("api_key"), "it is needed for BINANCE-SPOT");
        }
        if !usual.key.is_given() {
            self.fault(&key("secret"), "either secret or secret_file is needed for BINANCE-SPOT");
        }
        if let Some(path) = &usual.key.secret_file {
            self.file(&key("secret_file"), path);
        }
        if let Some(Err(problem)) = settings.stream_url.as_deref().map(VenueUrl::parse) {
            self.fault(&key("stream_url"), problem);
        }
        match settings.url.as_deref().map(VenueUrl::parse) {
            Some(Err(problem)) => self.fault(&key("url"), problem),
            Some(Ok(url)) if !settings.is_production && !url.is_loopback() && !is_testnet(&url) => {
                let text = "it is not an address of the testnet: that needs environment = \"production\"";
                self.fault(&key("url"), text);
            }
            Some(Ok(_)) | None => {}
        }
    }
}

/// Returns whether the venue says that orders there are not real. An address that it does not
/// name counts as production.
fn is_testnet(url: &VenueUrl) -> bool {
    url.host == TESTNET_DOMAIN
        || url.host.strip_suffix(TESTNET_DOMAIN).is_some_and(|front| front.ends_with('.'))
}
