//! Plays a dialogue that is written for FIX 4.4 in another version: how the client's messages are
//! written there, and what the answers mean in FIX 4.4. It repeats none of the service's tables: it
//! maps back what the service has mapped.

use pitlane_protocols::fix::version::FixVersion;

/// A version to play a dialogue in.
#[derive(Clone, Copy, Debug)]
pub struct Translation {
    pub version: FixVersion,
    /// Whether the dialogue is written for this version.
    is_native: bool,
    /// Whether the session reports by the profile `strict44`.
    is_strict: bool,
}

impl Translation {
    /// Returns the versions in which a dialogue is played: the one that it names, or all that have
    /// its messages. The rules of a session that validates are written for each version.
    pub fn of_dialogue(text: &str) -> Vec<Translation> {
        let is_strict = text.contains("set strict44=Y");
        let named =
            |version: &&FixVersion| text.contains(&format!("set version={}\n", version.begin_string()));
        if let Some(&version) = FixVersion::ALL.iter().find(named) {
            return vec![Translation { version, is_native: true, is_strict }];
        }
        let has = |part: &str| text.contains(part);
        let later = ["35=q", "35=x", "35=AF", "35=AN"];
        let can_play = |version: &FixVersion| match version {
            FixVersion::Fix44 => true,
            FixVersion::Fix42 => !has("validate=Y") && !later.iter().any(|part| has(part)),
            FixVersion::Fix50Sp2 => !has("validate=Y"),
        };
        let all = FixVersion::ALL.into_iter().filter(can_play);
        all.map(|version| Translation { version, is_native: version == FixVersion::Fix44, is_strict })
            .collect()
    }

    /// Returns a BeginString that is not the session's.
    pub fn other_begin_string(self) -> &'static str {
        match self.version {
            FixVersion::Fix42 => "FIX.4.4",
            FixVersion::Fix44 | FixVersion::Fix50Sp2 => "FIX.4.2",
        }
    }

    /// Returns a message of the client, as this version writes it.
    pub fn sent(self, text: &str) -> String {
        let is_logon = text.starts_with("35=A|") && !text.contains("|1137=");
        match self.version.appl_ver_id() {
            Some(id) if is_logon && !self.is_native => {
                format!("{text}|1137={}", String::from_utf8_lossy(id))
            }
            _ => text.to_string(),
        }
    }

    /// Returns raw bytes of the client with this version's BeginString.
    pub fn raw(self, text: &str) -> String {
        text.replace("8=FIX.4.4|", &format!("8={}|", self.version.begin_string()))
    }

    /// Returns what the client must receive, where this version has no such value.
    pub fn expected(self, fields: &str) -> String {
        let fields = self.raw(&format!("{fields}|"));
        let fields = fields.trim_end_matches('|');
        if self.is_native || self.version != FixVersion::Fix42 {
            return fields.to_string();
        }
        let known = |field: &str| {
            let above = |prefix: &str, most: u32| {
                let value = field.strip_prefix(prefix).and_then(|value| value.parse::<u32>().ok());
                value.is_some_and(|value| value > most)
            };
            match field {
                _ if above("103=", 8) => "103=0".to_string(),
                _ if above("102=", 3) => "102=2".to_string(),
                _ if above("373=", 11) => "-373".to_string(),
                _ if above("380=", 5) => "380=0".to_string(),
                _ => field.to_string(),
            }
        };
        fields.split('|').map(known).collect::<Vec<_>>().join("|")
    }

    /// Returns a message of the service as FIX 4.4 has it.
    pub fn received(self, message: &str) -> Result<String, String> {
        if self.is_native {
            return Ok(message.to_string());
        }
        let begin = format!("8={}|", self.version.begin_string());
        if !message.starts_with(&begin) {
            return Err(format!("another version: {message}"));
        }
        let get = |tag: &str| message.split('|').find_map(|field| field.strip_prefix(tag)?.strip_prefix('='));
        let is_logon = get("35") == Some("A");
        if self.version == FixVersion::Fix50Sp2 && is_logon && get("1137") != Some("9") {
            return Err(format!("without its application version: {message}"));
        }
        if self.version != FixVersion::Fix42 {
            return Ok(message.to_string());
        }
        let is_report = get("35") == Some("8");
        if is_report != get("20").is_some() {
            return Err(format!("ExecTransType (20) belongs to reports: {message}"));
        }
        let (trans_type, status) = (get("20"), get("39"));
        let replaced = |field: &str| {
            let (tag, value) = field.split_once('=')?;
            Some(match (tag, value) {
                ("150", _) if trans_type == Some("3") && Some(value) == status => "150=I".to_string(),
                ("150", "2") if status == Some("2") => "150=F".to_string(),
                ("150", "1") if status != Some("2") => "150=F".to_string(),
                ("150", "4" | "5" | "C") if !self.is_strict => "150=I".to_string(),
                ("39", "5") => "39=0".to_string(),
                ("39", "C") if !self.is_strict => "39=4".to_string(),
                _ => field.to_string(),
            })
        };
        Ok(message.split('|').map(|field| replaced(field).unwrap_or_default()).collect::<Vec<_>>().join("|"))
    }
}
