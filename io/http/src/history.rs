//! The past of the market: bars, ticks and quotes of the thread `history`.
//!
//! Rules: docs/market-history.md.

use hyper::header::{ACCEPT, HeaderMap, HeaderValue};
use hyper::{StatusCode, Uri};
use pitlane_engine::id::SecurityId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_history::{
    BarInterval, HistoryAnswer, HistoryBusy, HistoryClient, HistoryQuery, PageQuery, RowFormat,
};
use pitlane_market_data::column_format::ColumnFormat;
use pitlane_protocols::rest::{BadQuery, Moment, Query};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::{HttpResponse, ResponseKind};
use super::trading::Trading;

/// Rows of a page, unless the client wants fewer or more; and the most that it gets: 2 MB of JSON.
const PAGE_ROWS: usize = 1_000;
const PAGE_ROWS_MAX: usize = 10_000;
/// Maximum number of securities in one request for quotes.
const QUOTES_MAX: usize = 1_000;

const SECURITY_ID: &str = "securityId";

/// Formats of the rows.
pub(crate) const FORMATS: [RowFormat; 4] = [
    RowFormat::Json,
    RowFormat::Csv,
    RowFormat::Columns(ColumnFormat::Parquet),
    RowFormat::Columns(ColumnFormat::ArrowStream),
];

pub(crate) async fn bars(
    history: Option<&HistoryClient>,
    trading: &Trading,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&[SECURITY_ID, "interval", "from", "to", "limit"])?;
    let security = security(&query, &trading.shard_client.reference())?;
    let interval = query.get("interval").unwrap_or(BarInterval::Minute.name());
    let interval = BarInterval::parse(interval).ok_or_else(|| bad("`interval` must be 1s, 1m or 1d"))?;
    let page = page(&query)?;
    let link = format!("{SECURITY_ID}={}&interval={}", security.0, interval.name());
    respond(history, trading, ctx, HistoryQuery::Bars { security, interval, page }, Some((page, link))).await
}

pub(crate) async fn ticks(
    history: Option<&HistoryClient>,
    trading: &Trading,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&[SECURITY_ID, "from", "to", "limit"])?;
    let security = security(&query, &trading.shard_client.reference())?;
    let page = page(&query)?;
    let link = format!("{SECURITY_ID}={}", security.0);
    respond(history, trading, ctx, HistoryQuery::Ticks { security, page }, Some((page, link))).await
}

pub(crate) async fn quotes(
    history: Option<&HistoryClient>,
    trading: &Trading,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&[SECURITY_ID])?;
    let reference = trading.shard_client.reference();
    let securities: Vec<SecurityId> = match query.get(SECURITY_ID) {
        None => Vec::new(),
        Some(ids) => ids.split(',').map(|id| find(id, &reference)).collect::<Result<_, _>>()?,
    };
    if securities.len() > QUOTES_MAX {
        return Err(bad(format!("`{SECURITY_ID}` may have {QUOTES_MAX} ids, not {}", securities.len())));
    }
    respond(history, trading, ctx, HistoryQuery::Quotes { securities }, None).await
}

/// Responds with rows of the history.
async fn respond(
    history: Option<&HistoryClient>,
    trading: &Trading,
    ctx: &RequestContext<'_>,
    query: HistoryQuery,
    pages: Option<(PageQuery, String)>,
) -> Result<HttpResponse, Problem> {
    let format = format_of(&ctx.head.headers, ColumnFormat::IS_BUILT)?;
    let off = || Problem::unknown("history-off", "this service keeps no history: history.on is false");
    let history = history.ok_or_else(off)?;
    let answer = ask(history, trading, query, format).await?;
    let link = pages.and_then(|(page, link)| link_of(&ctx.head.uri, &page, &link, &answer));
    let kind = match format {
        RowFormat::Json => ResponseKind::Json,
        RowFormat::Csv => ResponseKind::Csv,
        RowFormat::Columns(format) => ResponseKind::Columns(format),
    };
    Ok(HttpResponse::text(kind, answer.body).with_link(link))
}

/// Asks the history and waits for its rows.
pub(crate) async fn ask(
    history: &HistoryClient,
    trading: &Trading,
    query: HistoryQuery,
    format: RowFormat,
) -> Result<HistoryAnswer, Problem> {
    let (answered, answer) = oneshot::channel();
    let sent = history.ask(query, format, move |answer| _ = answered.send(answer));
    sent.map_err(|HistoryBusy| too_many())?;
    // The thread answers every question, unless it is ending.
    let answer = timeout(trading.answer_timeout, answer).await.map_err(|_elapsed| too_many())?;
    let answer = answer.map_err(|_ended| Problem::stopping())?;
    answer.map_err(|error| {
        tracing::error!(%error, "the history of the market cannot be read");
        unreadable()
    })
}

pub(crate) fn unreadable() -> Problem {
    let detail = "the files of the history cannot be read; the log has the reason";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "history-unreadable", detail)
}

fn bad(detail: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::bad_request("bad-query", detail)
}

fn too_many() -> Problem {
    let detail = "too many questions to the history; try again";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).with_retry_after(1)
}

fn security(query: &Query, reference: &RefData) -> Result<SecurityId, Problem> {
    let text = query.required(SECURITY_ID).map_err(|bad_query| bad(bad_query.to_string()))?;
    find(text, reference)
}

/// Returns the security of an id in a query.
fn find(text: &str, reference: &RefData) -> Result<SecurityId, Problem> {
    let is_number = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    if !is_number {
        return Err(bad(format!("`{SECURITY_ID}` must be the id of a security")));
    }
    let id = text.parse().ok().map(SecurityId).filter(|id| reference.security(*id).is_some());
    id.ok_or_else(|| Problem::unknown("unknown-security", "there is no security with this id"))
}

fn page(query: &Query) -> Result<PageQuery, Problem> {
    let moment = |name: &'static str| match query.get(name) {
        None => Ok(None),
        Some(text) => Moment::parse_begin(text)
            .map(|moment| Some(moment.0))
            .map_err(|_| bad(format!("`{name}` must be such as 2026-11-14T09:30:00Z or 2026-11-14"))),
    };
    let (from, to) = (moment("from")?, moment("to")?.unwrap_or(Timestamp::MAX));
    if from.is_some_and(|from| from >= to) {
        return Err(bad("`to` must be later than `from`"));
    }
    let limit = query.count("limit").map_err(|bad_query: BadQuery| bad(bad_query.to_string()))?;
    let limit = limit.unwrap_or(PAGE_ROWS);
    if limit > PAGE_ROWS_MAX {
        return Err(bad(format!("`limit` may be {PAGE_ROWS_MAX} at most")));
    }
    Ok(PageQuery { from, to, limit })
}

/// Returns the Link header of RFC 8288 to the page that follows, or to the page before.
fn link_of(uri: &Uri, page: &PageQuery, query: &str, answer: &HistoryAnswer) -> Option<HeaderValue> {
    let (rel, from, to) = match (answer.next_from, answer.previous_to) {
        (Some(from), _) => ("next", Some(from), Some(page.to).filter(|to| *to < Timestamp::MAX)),
        (None, Some(to)) => ("prev", page.from, Some(to)),
        (None, None) => return None,
    };
    let range = |name, at: Option<Timestamp>| at.map_or(String::new(), |at| format!("&{name}={at}"));
    let (from, to, limit) = (range("from", from), range("to", to), page.limit);
    let link = format!("<{}?{query}{from}{to}&limit={limit}>; rel=\"{rel}\"", uri.path());
    HeaderValue::try_from(link).ok()
}

pub(crate) fn media_type(format: RowFormat) -> &'static str {
    match format {
        RowFormat::Json => "application/json",
        RowFormat::Csv => "text/csv",
        RowFormat::Columns(format) => format.media_type(),
    }
}

/// Returns the format that the client prefers of those that there are; only some builds have
/// columns.
fn format_of(headers: &HeaderMap, has_columns: bool) -> Result<RowFormat, Problem> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    if ranges.iter().all(|range| range.is_empty()) {
        return Ok(RowFormat::Json);
    }
    let is_built = |format: &&RowFormat| has_columns || !matches!(format, RowFormat::Columns(_));
    // The quality is a decimal with three places at most; of equal ones the first counts.
    let mut best: Option<(f32, RowFormat)> = None;
    for range in ranges {
        let mut parts = range.split(';').map(str::trim);
        let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "application/*" | "*/*" => Some(&RowFormat::Json),
            "text/*" => Some(&RowFormat::Csv),
            name => FORMATS.iter().filter(is_built).find(|format| media_type(**format) == name),
        };
        let Some(format) = format else { continue };
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let quality = quality.map_or(1.0, |text| text.parse().unwrap_or(0.0));
        if quality > best.map_or(0.0, |(best, _)| best) {
            best = Some((quality, *format));
        }
    }
    best.map(|(_, format)| format).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().filter(is_built).map(|format| media_type(*format)).collect();
        let mut detail = format!("the answer can be {}", names.join(" or "));
        if names.len() < FORMATS.len() {
            detail.push_str(
                "; this binary was built without the feature `parquet`, which has Parquet and Arrow",
            );
        }
        Problem::new(StatusCode::NOT_ACCEPTABLE, "not-acceptable", detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARQUET: RowFormat = RowFormat::Columns(ColumnFormat::Parquet);
    const ARROW: RowFormat = RowFormat::Columns(ColumnFormat::ArrowStream);

    fn accept(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn the_format_is_the_one_that_the_client_prefers() {
        assert_eq!(format_of(&HeaderMap::new(), true).ok(), Some(RowFormat::Json));
        for (value, format) in [
            ("", Some(RowFormat::Json)),
            ("*/*", Some(RowFormat::Json)),
            ("application/json", Some(RowFormat::Json)),
            ("Text/CSV", Some(RowFormat::Csv)),
            ("text/csv; header=present", Some(RowFormat::Csv)),
            ("text/html, text/csv;q=0.5, */*;q=0.1", Some(RowFormat::Csv)),
            ("text/csv;q=0.5, application/json;q=0.6", Some(RowFormat::Json)),
            ("text/csv, application/json", Some(RowFormat::Csv)),
            ("text/csv;q=0, application/json;q=0.1", Some(RowFormat::Json)),
            ("text/csv;q=0", None),
            ("text/csv;q=x", None),
            ("image/png", None),
            ("application/vnd.apache.parquet", Some(PARQUET)),
            ("APPLICATION/VND.APACHE.ARROW.STREAM", Some(ARROW)),
            ("application/vnd.apache.parquet;q=0.4, application/vnd.apache.arrow.stream;q=0.5", Some(ARROW)),
            ("application/vnd.apache.parquet;q=0, */*;q=0.1", Some(RowFormat::Json)),
            ("application/vnd.apache.parquet;q=0", None),
            ("application/vnd.apache.arrow.file", None),
        ] {
            assert_eq!(format_of(&accept(value), true).ok(), format, "{value}");
        }
    }

    #[test]
    fn a_format_that_is_not_there_is_refused_with_those_that_are() {
        let refused = |value: &str, has_columns: bool| {
            format_of(&accept(value), has_columns).unwrap_err().detail.to_string()
        };
        let parquet = "application/vnd.apache.parquet";
        assert_eq!(
            refused(parquet, false),
            "the answer can be application/json or text/csv; this binary was built without the feature \
             `parquet`, which has Parquet and Arrow"
        );
        assert_eq!(
            refused("image/png", true),
            "the answer can be application/json or text/csv or application/vnd.apache.parquet or \
             application/vnd.apache.arrow.stream"
        );
        let or_csv = accept("application/vnd.apache.parquet, text/csv;q=0.5");
        assert_eq!(format_of(&or_csv, false).ok(), Some(RowFormat::Csv));
    }

    #[test]
    fn a_page_is_bounded_and_its_times_are_in_order() {
        let parse = |text: &str| {
            page(&Query::parse(text, &["from", "to", "limit"]).unwrap()).map_err(|problem| problem.code)
        };
        let day = Moment::parse_begin("2026-11-14").unwrap().0;
        assert_eq!(parse(""), Ok(PageQuery { from: None, to: Timestamp::MAX, limit: PAGE_ROWS }));
        assert_eq!(
            parse("from=2026-11-14&to=2026-11-14T00:00:00.000000001Z&limit=10000"),
            Ok(PageQuery { from: Some(day), to: day.plus(1), limit: PAGE_ROWS_MAX })
        );
        for text in [
            "limit=10001",
            "limit=0",
            "limit=x",
            "from=today",
            "from=",
            "to=2026-02-30",
            "from=2026-11-14&to=2026-11-14",
            "from=2026-11-15&to=2026-11-14",
        ] {
            assert_eq!(parse(text), Err("bad-query"), "{text}");
        }
    }

    #[test]
    fn a_link_leads_to_the_rest_of_the_range() {
        let uri = Uri::from_static("/rest/ext/ticks?securityId=1");
        let at = |text: &str| Moment::parse(text).unwrap().0;
        let (nine, ten) = (at("2026-11-14T09:00:00.5Z"), at("2026-11-14T10:00:00Z"));
        let answer = |next_from, previous_to| HistoryAnswer { body: Vec::new(), next_from, previous_to };
        let link = |page: PageQuery, answer: HistoryAnswer| {
            let link = link_of(&uri, &page, "securityId=1", &answer)?;
            link.to_str().ok().map(str::to_string)
        };
        let page = PageQuery { from: None, to: Timestamp::MAX, limit: 5 };
        assert_eq!(link(page, answer(None, None)), None);
        assert_eq!(
            link(page, answer(None, Some(nine))).unwrap(),
            "</rest/ext/ticks?securityId=1&to=2026-11-14T09:00:00.500Z&limit=5>; rel=\"prev\""
        );
        let page = PageQuery { from: Some(Timestamp(0)), to: ten, limit: 5 };
        assert_eq!(
            link(page, answer(Some(nine), None)).unwrap(),
            "</rest/ext/ticks?securityId=1&from=2026-11-14T09:00:00.500Z&to=2026-11-14T10:00:00Z&limit=5>; rel=\"next\""
        );
    }
}
