//! Decimals are returned exactly as they were sent: no value passes through a float.

use pitlane_engine::rng::Rng;
use pitlane_protocols::rest::Decimal;

use crate::service::RestService;

/// Random prices over the whole range, many of which a 64-bit float cannot hold, as numbers, texts
/// and with exponents.
#[test]
fn any_decimal_is_read_back_to_the_last_digit() {
    let folder = crate::service::folder("decimals");
    let refdata = fine_grained(&folder);
    let mut service = RestService::with(&folder, &[&format!("refdata.dir={}", refdata.display())]);
    let mut chance = Rng::new(7);
    for step in 0..400 {
        let raw = ((chance.next_u64() >> 1) as i64) >> (step % 40);
        // The largest value that can be counted with a quantity of one, and above zero.
        let raw = (raw % (i64::MAX / 4)).max(1);
        let text = Decimal { raw }.to_string();
        let written = match step % 4 {
            0 => text.clone(),
            1 => format!("\"{text}\""),
            2 => format!("{raw}e-8"),
            _ => format!("{text}{}", if text.contains('.') { "000" } else { ".0" }),
        };
        let id = format!("d{step}");
        let body = format!(
            r#"{{"intId":"{id}","securityId":1,"side":"BUY","quantity":1,"limit":{written},"tif":"GTC"}}"#
        );
        let answer =
            service.ask("POST", "/rest/execution/order/limit", "Prefer: return=representation\r\n", &body);
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
        // The text of the response, not the result of a parser.
        for shown in [answer.body, service.get(&format!("/rest/execution/order/{id}")).body] {
            assert!(shown.contains(&format!("\"limit\":{text},")), "{written} became {shown}");
        }
        service.delete(&format!("/rest/execution/order/{id}"));
    }
}

/// A market whose prices have all eight places, so that none is refused for its tick.
fn fine_grained(folder: &std::path::Path) -> std::path::PathBuf {
    let folder = folder.join("refdata");
    std::fs::create_dir_all(&folder).unwrap();
    let files = [
        (
            "exchanges.csv",
            "id,name,mic,timeZone,open,close,auctions,adapterType\n1,One,XONE,UTC,00:00,24:00,false,SIM\n",
        ),
        (
            "families.csv",
            "id,name,symbolRoot,exchangeId,currency,contractSize,tickSize,lotSize,commission,tradeable,expirable\n\
             1,All,,1,USD,1,0.00000001,0.00000001,0,true,false\n",
        ),
        (
            "securities.csv",
            "id,symbol,description,type,securityFamilyId,isin,underlyingId,expiration,strike,optionType,baseCurrency,startPrice,tradeable\n\
             1,ONE,The one,STOCK,1,,,,,,,1,true\n",
        ),
        ("accounts.csv", "id,name,active,adapterType,exchangeIds\n1,MAIN,true,SIM,1\n"),
        ("strategies.csv", "id,name,autoActivate\n0,SERVER,true\n"),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    folder
}
